"""Command line of the benchmark: ``python -m benchmarks.forecast [record]``: writes its table.

`record` runs the recorded programs anew first, which takes some minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from benchmarks.forecast import kinds_report, kinds_tuning
from benchmarks.forecast.count import MOMENTS, Count, count
from benchmarks.forecast.programs import PROGRAMS
from benchmarks.forecast.recorded import record, recorded
from benchmarks.forecast.runs import LEAK, NEITHER, Run

RUNS, SEED = 60, 20_261_119  # of each kind
HERE = Path(__file__).parent
TOLD, ALARMS, LOW, HIGH = 0.90, 0.01, 0.85, 0.95
Kind = Callable[[Random], Run]
INTRODUCTION = f"""\
`make bench-forecast`: {RUNS} synthetic runs of each kind (seed {SEED}) and recorded programs are \
judged as `memfit run` judges them while they go on. Starts, sizes, rates, noise, the rise and \
fall of updates are drawn anew for each run. Constants were chosen on the first table's kinds; the \
second table's were written afterwards, and are for this report alone, as are the recorded programs.

A leak can be told once it has added 20 MiB and 2 % of the peak so far. From then on each run is \
judged at {MOMENTS} moments, drawn evenly from the time that it still grows, with a limit that it \
reaches later. All moments and all crossings count: growth that is not told is a miss in both. A \
run without a leak that is told as one at any moment (every 5 s for two minutes, then every 20 s) \
is an alarm."""
HEAD = """\
| kind | is | runs | told | told at once | alarms | verdict at the end right | crossings | \
within the 90 % interval | width |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"""
NOTE = """\
*Told at once*: at the first look after it could be. *Width*: of the interval, by the time that \
was ahead (median)."""


def main(arguments: Sequence[str]) -> None:
    if "record" in arguments:
        for name in PROGRAMS:
            record(name)
    tuning, report = _counted(kinds_tuning.KINDS), _counted(kinds_report.KINDS)
    programs = [_counted_run(recorded(name)) for name in PROGRAMS]
    parts = ["# Forecasts", INTRODUCTION]
    parts += ["## Kinds that constants were chosen on", _table(tuning)]
    parts += ["## Kinds for the report alone", _table(report)]
    parts += ["## Recorded programs, for the report alone", _table(programs), NOTE]
    parts += ["## All", _totals({"chosen on": tuning, "report alone": [*report, *programs]})]
    (HERE / "README.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _counted(kinds: Sequence[Kind]) -> list[Count]:
    found = []
    for kind in kinds:
        draw = Random(f"{SEED} {kind.__name__}")
        runs = (kind(draw) for _ in range(RUNS))
        first = next(runs)
        counted = Count(kind=first.kind, truth=first.truth)
        for run in (first, *runs):
            count(counted, run, draw)
        found.append(counted)
    return found


def _counted_run(run: Run) -> Count:
    counted = Count(kind=run.kind, truth=run.truth)
    count(counted, run, Random(SEED))
    return counted


def _table(counts: Sequence[Count]) -> str:
    return "\n".join([HEAD, *map(_row, counts)])


def _row(c: Count) -> str:
    grows = c.truth != NEITHER
    cells = [c.kind, c.truth, str(c.runs)]
    cells += [_share(c.told, c.moments), _share(c.at_once, c.tellable)] if grows else ["", ""]
    cells += ["" if c.truth == LEAK else str(c.alarms), _share(c.verdicts, c.runs)]
    cells += (
        [str(c.crossings), _share(c.held, c.crossings), f"{c.width:.2f}"] if grows else [""] * 3
    )
    return f"| {' | '.join(cells)} |"


def _totals(groups: dict[str, Sequence[Count]]) -> str:
    rows = ["| runs | leaks told | alarms | crossings within the interval |", "|---|--:|--:|--:|"]
    asked = f"asked | at least {TOLD:.0%} | at most {ALARMS:.0%} | {LOW:.0%} to {HIGH:.0%}"
    every = [c for counts in groups.values() for c in counts]
    for name, counts in {**groups, "all": every}.items():
        leaks = [c for c in counts if c.truth == LEAK]
        others = [c for c in counts if c.truth != LEAK]
        growing = [c for c in counts if c.truth != NEITHER]
        told = sum(c.told for c in leaks) / sum(c.moments for c in leaks)
        alarms = sum(c.alarms for c in others) / sum(c.runs for c in others)
        held = sum(c.held for c in growing) / sum(c.crossings for c in growing)
        cells = [
            f"{told:.1%} ({_met(told >= TOLD)})",
            f"{alarms:.1%} of {sum(c.runs for c in others):,} ({_met(alarms <= ALARMS)})",
            f"{held:.1%} of {sum(c.crossings for c in growing):,} ({_met(LOW <= held <= HIGH)})",
        ]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*rows, f"| {asked} |"])


def _met(met: bool) -> str:
    return "met" if met else "MISSED"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else ""


if __name__ == "__main__":
    main(sys.argv[1:])
