"""Write the table from the results: what misses what is asked is bold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

MIB = 2**20
SECONDS, SHARE, SLOWDOWN = 5.0, 0.9, 0.1
INTRODUCTION = f"""\
# Live programs

`make bench-live` measures these on a machine with 2 cores, after the forecasts. Each program runs \
under `memfit run`, on all cores, and is asked by `memfit explain PID` from 20 seconds after its \
start on, in turns with times as long in which it is left alone. The time to an answer is that of \
the whole command, Python's start included; shares are those of the *first* answer. What is held \
is private memory. The slowdown compares the pace while it is asked with the pace when it is left \
alone: of the work that a program counts or, marked *, of the processor's time that it gets. The \
verdict is that of the recording at its end: a leak that is told as one, with the holder that \
grows among the four largest of an answer; none that is told where there is none.

Asked: an answer within {SECONDS:.0f} s, at least {SHARE:.0%} by holder, at most {SLOWDOWN:.0%} \
slower. What misses that is **bold**; no answer is a miss."""
HEAD = """\
| program | PSS, MiB | by layer, s | with holders, s | others, s | named by layer | by holder | \
slower by | verdict | right | load |
|---|--:|--:|--:|--:|--:|--:|--:|---|---|--:|"""


def write(results: Path, readme: Path) -> None:
    """One table of all programs that have results."""
    rows: list[dict[str, Any]] = []
    for stage in ("systems", "never", "programs", "large"):
        file = results / f"{stage}.json"
        rows += json.loads(file.read_text()) if file.exists() else []
    notes = (
        "*others*: of the later answers, the slowest. *load*: of the machine at the program's end."
    )
    parts = [INTRODUCTION, "\n".join([HEAD, *map(_row, rows)]), notes, _summary(rows)]
    readme.write_text("\n\n".join(parts) + "\n")


def _row(r: dict[str, Any]) -> str:
    first, *others = r["answers"]
    slow = r["slowdown"]
    cells = [
        r["name"],
        f"{first.get('pss_bytes', 0) / MIB:,.0f}",
        _seconds(r["outside"]),
        _seconds(first),
        f"{max(a['seconds'] for a in others):.1f}" if others else "",
        f"{first.get('named_share', 0):.1%}",
        _bold(f"{first.get('held_share', 0):.1%}", missed=not _held(r)),
        "not known" if slow is None else _slower(r),
        r["growth"],
        _bold("yes" if _right(r) else "no", missed=not _right(r)),
        f"{r['load']:.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def _summary(rows: list[dict[str, Any]]) -> str:
    lines = [
        ("an answer with holders in time", sum(_in_time(r["answers"][0]) for r in rows)),
        ("at least 90 % by holder at the first answer", sum(map(_held, rows))),
        ("slowed by 10 % or less", sum(map(_unslowed, rows))),
        ("verdict right", sum(map(_right, rows))),
    ]
    return "\n".join(f"- {text}: {count} of {len(rows)}" for text, count in lines)


def _seconds(answer: dict[str, Any]) -> str:
    text = f"{answer['seconds']:.1f}" if answer["answered"] else "no answer"
    return _bold(text, missed=not _in_time(answer))


def _slower(r: dict[str, Any]) -> str:
    text = f"{max(0.0, r['slowdown']):.0%}{'' if r['counted'] else '*'}"
    return _bold(text, missed=not _unslowed(r))


def _in_time(answer: dict[str, Any]) -> bool:
    return bool(answer["answered"] and answer["seconds"] <= SECONDS)


def _held(r: dict[str, Any]) -> bool:
    return bool(r["answers"][0].get("held_share", 0) >= SHARE)


def _unslowed(r: dict[str, Any]) -> bool:
    return r["slowdown"] is not None and r["slowdown"] <= SLOWDOWN


def _right(r: dict[str, Any]) -> bool:
    if not r["should_grow"]:
        return bool(r["growth"] != "leaking")
    paths = [path for a in r["answers"] for path, _ in a.get("holders", [])]
    return r["growth"] == "leaking" and any(r["should_grow"] in path for path in paths)


def _bold(text: str, *, missed: bool) -> str:
    return f"**{text}**" if missed else text
