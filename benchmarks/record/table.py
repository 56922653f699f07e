"""The committed table of the benchmark, from its results."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

GIB, MIB = 2**30, 2**20
MOST = 0.02
INTRODUCTION = """\
# Recording: cost, kills, the guard, a sweep

`make bench-record` measures these on a machine with 2 cores. Times are ratios of what follows \
each other; bytes are the kernel's.
"""


def write(results: Path, place: Path) -> None:
    """Write the table of all results that there are."""
    parts = [INTRODUCTION]
    for name, part in (("cost", _cost), ("kills", _kills), ("guard", _guard), ("sweep", _sweep)):
        file = results / f"{name}.json"
        if file.exists():
            parts.append(part(json.loads(file.read_text())))
    place.write_text("\n".join(parts))


def _met(yes: bool) -> str:
    return "met" if yes else "MISSED"


def _cost(found: Mapping[str, Mapping[str, Sequence[tuple[float, int]]]]) -> str:
    lines = [
        "## What recording costs",
        "",
        "A training under `memfit run --limit` whose recorder is held still (SIGSTOP) every other",
        "0.7 seconds: the time of its small, equal iterations in each turn while it is recorded,",
        "against the turns before and after, in which it is not; the mean of the middle half of",
        "all turns. The noise is the same comparison with the recorder held all the time.",
        "Intervals of 90 % are of 1,000 drawings of turns with replacement.",
        "",
        "| training | iterations | recorded | noise |",
        "|---|--:|--:|--:|",
    ]
    costs = []
    for name, ways in found.items():
        cells = []
        for way in ("recorded", "noise"):
            more, low, high = _more(ways[way])
            cells.append(f"{more:+.1%} ({low:+.1%} to {high:+.1%})")
            costs += [more] if way == "recorded" else []
        count = sum(count for _, count in ways["recorded"])
        lines.append(f"| {name} | {count:,} | {cells[0]} | {cells[1]} |")
    worst = max(costs)
    verdict = f"worst {worst:+.1%}: {_met(worst <= MOST)}"
    lines += ["", f"Asked: at most {MOST:.0%} ({verdict}).\n"]
    return "\n".join(lines)


def _more(turns: Sequence[tuple[float, int]]) -> tuple[float, float, float]:
    """By how much the first and every other turn is longer than its neighbours; 90 % interval."""
    draw = Random(0)
    times = [time for time, _ in turns]
    ratios = [
        times[i] / mean([times[i - 1], times[i + 1]]) - 1
        for i in range(2, len(turns) - 1, 2)
        if times[i - 1] and times[i] and times[i + 1]
    ]
    drawn = sorted(_middle(draw.choices(ratios, k=len(ratios))) for _ in range(1000))
    return _middle(ratios), drawn[50], drawn[949]


def _middle(values: Sequence[float]) -> float:
    """The mean of the middle half."""
    ordered = sorted(values)
    quarter = len(ordered) // 4
    return mean(ordered[quarter : len(ordered) - quarter])


def _kills(found: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "## SIGKILL at random moments",
        "",
        "| killed | times | file whole | not begun yet | damaged | readings lost | left running |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    right = True
    for who, count in Counter(r["who"] for r in found).items():
        own = [r for r in found if r["who"] == who]
        whole = sum(r["kept"] >= 0 for r in own)
        early = sum(r["kept"] == -1 for r in own)
        damaged = sum(r["kept"] == -2 for r in own)
        lost = sum(max(0, r["before"] - max(0, r["kept"])) for r in own)
        left = sum(r["left"] for r in own)
        right = right and not (damaged or lost or left)
        lines.append(f"| {who} | {count} | {whole} | {early} | {damaged} | {lost} | {left} |")
    enough = right and sum(r["kept"] >= 0 for r in found) >= 200
    lines += ["", f"Asked: 200 moments, an intact file each time ({_met(enough)}).\n"]
    return "\n".join(lines)


def _guard(found: Mapping[str, Any]) -> str:
    limit = found["limit"]
    lines = [
        "## The guard",
        "",
        f"A child that allocates and touches memory, below `--limit {limit // GIB}GiB`.",
        "",
        "| GiB a second | reached | times | ended | highest, of the limit | least memory left |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    right = True
    for rate in sorted({r["rate"] for r in found["runs"]}, reverse=True):
        own = [r for r in found["runs"] if r["rate"] == rate]
        most = max(max(r["kernel_peak"], r["recorded_peak"]) for r in own) / limit
        ended = sum(r["exit_code"] != 0 for r in own)
        least = min(r["least_available"] for r in own) / GIB
        right = right and most <= 1.1 and ended == len(own)
        name = f"{rate / GIB:.0f}" if rate else "as fast as it can"
        # One that was killed before it could end itself could not say.
        rates = [r["reached_rate"] / GIB for r in own if r["reached_rate"]]
        reached = f"{min(rates):.1f} to {max(rates):.1f}" if rates else ""
        lines.append(
            f"| {name} | {reached} | {len(own)} | {ended} | {most:.1%} | {least:.1f} GiB |"
        )
    lines += ["", f"Asked: below 110 % at 2 GiB a second ({_met(right)}).\n"]
    return "\n".join(lines)


def _sweep(found: Mapping[str, Any]) -> str:
    command = " ".join(found["command"])
    fit = found["fit"]
    lines = [
        "## A sweep to out of memory",
        "",
        f"`memfit sweep {found['target']} --over agents=25..800 --limit 4GiB -- {command}`",
        "",
        "| agents | peak, MiB | planned, MiB | outcome |",
        "|--:|--:|--:|---|",
    ]
    for point in found["points"]:
        over = "over " if point["outcome"] == "out of memory" else ""
        lines.append(
            f"| {point['value']:,} | {over}{point['peak_bytes'] / MIB:,.0f} | "
            f"{point['planned_bytes'] / MIB:,.0f} | {point['outcome']} |"
        )
    each, fixed = fit["bytes_per_unit"] / MIB, fit["fixed_bytes"] / MIB
    lines += ["", f"{fixed:,.0f} MiB fixed and {each:.2f} MiB an agent."]
    lines += [
        f"{row['hardware']}: {row['largest']:,} agents by the measured line, "
        f"{row['planned']:,} by the plan."
        for row in found["capacity"]
    ]
    used = (found["available_before"] - found["least_available"]) / GIB
    lines += [f"The machine's free memory was never lower than before by more than {used:.1f} GiB."]
    return "\n".join(lines) + "\n"
