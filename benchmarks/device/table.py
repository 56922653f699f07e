"""The table of the benchmark, written into its README."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any

from memfit.units import GIB

MOST, MOST_SNAPSHOT, MOST_SECONDS = 0.05, 0.02, 15.0
_ANCHORS = {"xmem": "xMem", "dnnmem": "DNNMem", "schedtune": "SchedTune", "llmem": "LLMem"}
INTRODUCTION = """\
# Device memory, without a device

`make bench-device`: what was measured on cards of others beside what memfit says on the CPU, by \
recording the tensors of some updates, without data in them, and simulating CUDA's caching \
allocator. It needs the published figures beside the project (`../shared/data/device`), and \
fetches the package transformers; networks for pictures are built by hand in plain torch.

This measures the two parts that a plan for a card rests on, at the real batch. `memfit plan \
--device` states two small real updates at the run's batch instead.

No constant was fitted to these rows, but after a look at the first of them the card's capacity \
and what attention keeps were corrected, and the snapshots' model and autocast were settled on \
those four rows: sizes are torch's own, cuBLAS's workspaces go by its rule, and workspaces of \
cuDNN are left out. A card has its size less 500 MiB for the context. \
Bold: off by more than 5 % (2 % for snapshots), a wrong verdict, or more than 15 s. A run that \
could not be predicted is a miss. Where the real run ran out of memory, its row is a verdict alone.

Which recorded trainings were of mixed precision is not said with them, and was read from their \
requests, which a plan does not have: for these, the program was known better than it usually is."""


def write(done: dict[str, Any], to: Path, *, of: int) -> None:
    """All rows so far, and what they come to."""
    runs = {name: row for name, row in done.items() if row["kind"] != "snapshot"}
    lines = [INTRODUCTION, ""]
    if of > len(done):
        lines += [
            f"**Of {of} runs, {len(done)} were predicted so far, in an order of chance.**",
            "",
        ]
    lines += ["## Published runs", "", *_summary(list(runs.values())), ""]
    columns = ["run", "real MiB", "memfit", "error", "xMem", "fits", "memfit", "seconds"]
    lines += _head(columns)
    lines += [_row(name, row) for name, row in runs.items()]
    lines += ["", "## Recorded trainings of a transformer", ""]
    lines += _head(["run", "allocated MiB", "memfit", "error", "reserved error", "held GiB", "s"])
    lines += [_snapshot(n, row) for n, row in done.items() if row["kind"] == "snapshot"]
    to.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _summary(rows: list[dict[str, Any]]) -> list[str]:
    lines = _head(["", "runs", "median error", "verdict right", "of"])

    def told(name: str, bytes_: Callable[[Any], Any], fits: Callable[[Any], Any]) -> str:
        known = [r for r in rows if r["real_fits"] and bytes_(r) is not None]
        errors = [abs(bytes_(r) / r["real"] - 1) for r in known]
        judged = [r for r in rows if fits(r) is not None]
        right = sum(fits(r) == r["real_fits"] for r in judged)
        middle = f"{median(errors):.1%}" if errors else "-"
        return f"| {name} | {len(known)} | {middle} | {right} | {len(judged)} |"

    failed = sum("failed" in r for r in rows)
    lines.append(told("memfit", lambda r: r.get("reserved"), lambda r: r.get("fits", "no")))
    for key, name in _ANCHORS.items():
        lines.append(told(name, _of_anchor(key, "bytes"), _of_anchor(key, "fits")))
    slow = sum(r.get("seconds", 0) > MOST_SECONDS for r in rows)
    return [*lines, "", f"Not predicted at all: {failed}. Slower than 15 s: {slow}."]


def _of_anchor(key: str, what: str) -> Callable[[Any], Any]:
    return lambda row: row["anchors"][key][what]


def _row(name: str, row: dict[str, Any]) -> str:
    real, fits = row["real"], "yes" if row["real_fits"] else "no"
    xmem = row["anchors"]["xmem"]["bytes"]
    other = f"{xmem / real - 1:+.1%}" if xmem and row["real_fits"] else ""
    if "failed" in row:
        return f"| {name} | {real >> 20:,} | **failed** | | {other} | {fits} | **failed** | |"
    off = row["reserved"] / real - 1
    error = _bold(f"{off:+.1%}", abs(off) > MOST) if row["real_fits"] else ""
    verdict = _bold("yes" if row["fits"] else "no", row["fits"] != row["real_fits"])
    seconds = _bold(f"{row['seconds']:.0f}", row["seconds"] > MOST_SECONDS)
    cells = (f"{real >> 20:,}", f"{row['reserved'] >> 20:,}", error, other, fits, verdict, seconds)
    return f"| {name} | {' | '.join(cells)} |"


def _snapshot(name: str, row: dict[str, Any]) -> str:
    if "failed" in row:
        return f"| {name} | {row['real'] >> 20:,} | **failed** | | | | |"
    off = row["allocated"] / row["real"] - 1
    cells = (
        f"{row['real'] >> 20:,}",
        f"{row['allocated'] >> 20:,}",
        _bold(f"{off:+.2%}", abs(off) > MOST_SNAPSHOT),
        f"{row['reserved'] / row['real_reserved'] - 1:+.2%}",
        f"{row['held'] / GIB:.1f}",
        _bold(f"{row['seconds']:.0f}", row["seconds"] > MOST_SECONDS),
    )
    return f"| {name} | {' | '.join(cells)} |"


def _bold(text: str, bold: bool) -> str:
    return f"**{text}**" if bold else text


def _head(columns: Iterable[str]) -> list[str]:
    names = list(columns)
    return [f"| {' | '.join(names)} |", f"|---|{'--:|' * (len(names) - 1)}"]
