"""Command line of the benchmark: ``python -m benchmarks.forecast [record [NAME ...]]``.

It writes the table. `record` runs the recorded programs anew instead, or those that are named:
half an hour for all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path
from random import Random

from benchmarks.forecast import kinds_moved, kinds_report, kinds_tuning
from benchmarks.forecast.count import MOMENTS, Count, count
from benchmarks.forecast.programs import PROGRAMS
from benchmarks.forecast.recorded import record, recorded
from benchmarks.forecast.runs import LEAK, NEITHER, Run

RUNS = 60  # of each kind
TUNING_SEED, REPORT_SEED = 20_261_119, 20_261_122
HERE = Path(__file__).parent
TOLD, ALARMS, LOW, HIGH = 0.90, 0.01, 0.85, 0.95
Kind = Callable[[Random], Run]
INTRODUCTION = f"""\
`make bench-forecast`: {RUNS} synthetic runs of each kind and recorded programs are judged as \
`memfit run` judges them while they go on. Starts, sizes, rates, noise, the rise and fall of \
updates are drawn anew for each run. Constants were chosen on the first table's kinds (seed \
{TUNING_SEED}); the second table's were written afterwards and are for this report alone (seed \
{REPORT_SEED}), as are the recorded programs. A kind in answer to which the analysis was changed \
moves to the first table, and others are written for the second: this page's were drawn and \
counted once.

A leak can be told once it has added 20 MiB and 2 % of the peak so far. From then on each run is \
judged at {MOMENTS} moments, drawn evenly from the time that it still grows, with a limit that it \
reaches later. All moments and all crossings count: growth that is not told is a miss in both.

Growth is told in two grades. *Growing*: at one pace so far, with the time at which the limit is \
reached "if it goes on so". *Leaking*: that pace has lasted for 90 s and in more than a few steps. \
A cache that fills begins as a leak does, so that no curve tells one from the other at once. \
Pages before this one had one grade, told at once: 93.1 % of leaks with alarms in 12.3 % of runs. \
*Told* \
counts both grades, *as a leak* only the second. An *alarm* is a run without a leak that is told \
as leaking at any moment (every 5 s for two minutes, then every 20 s); *growth told* are those \
of which either grade was told at any moment."""
HEAD = """\
| kind | is | runs | told | as a leak | told at once | told before it began | alarms | growth told \
| verdict at the end right | crossings | within the 90 % interval | width |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"""
BEYOND = """\
A queue of Python objects that ends at its length grows as a leak does until it is full; \
`memfit explain` names the queue, and nothing tells that it ends."""
NOTE = """\
**Bold**: below what is asked of all runs together, or a verdict that is wrong. *Told at once*: at \
the first look after it could be. *Told before it began*: runs whose leak was told while they \
still started. *Width*: of the interval, by the time that was ahead (median)."""


def main(arguments: Sequence[str]) -> None:
    if "record" in arguments:
        for name in arguments[1:] or PROGRAMS:
            record(name)
        return
    tuning = _counted((*kinds_tuning.KINDS, *kinds_moved.KINDS), TUNING_SEED)
    report = _counted(kinds_report.KINDS, REPORT_SEED)
    beyond = _counted(kinds_report.BEYOND, REPORT_SEED)
    programs = [_counted_run(recorded(name)) for name in PROGRAMS]
    parts = ["# Forecasts", INTRODUCTION]
    parts += ["## Kinds that constants were chosen on", _table(tuning)]
    parts += ["## Kinds for the report alone", _table(report)]
    parts += ["## Recorded programs, for the report alone", _table(programs), NOTE]
    parts += ["## What memory alone cannot tell, not in the sums", BEYOND, _table(beyond)]
    parts += ["## All", _totals({"chosen on": tuning, "report alone": [*report, *programs]})]
    (HERE / "README.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _counted(kinds: Sequence[Kind], seed: int) -> list[Count]:
    with ProcessPoolExecutor() as pool:
        return list(pool.map(_counted_kind, kinds, repeat(seed)))


def _counted_kind(kind: Kind, seed: int) -> Count:
    draw = Random(f"{seed} {kind.__name__}")
    runs = (kind(draw) for _ in range(RUNS))
    first = next(runs)
    counted = Count(kind=first.kind, truth=first.truth)
    for run in (first, *runs):
        count(counted, run, draw)
    return counted


def _counted_run(run: Run) -> Count:
    counted = Count(kind=run.kind, truth=run.truth)
    count(counted, run, Random(REPORT_SEED))
    return counted


def _table(counts: Sequence[Count]) -> str:
    return "\n".join([HEAD, *map(_row, counts)])


def _row(c: Count) -> str:
    grows, leaks = c.truth != NEITHER, c.truth == LEAK
    told = _share(c.told, c.moments, missed=leaks and c.told < TOLD * c.moments)
    cells = [c.kind, c.truth, str(c.runs)]
    sure = _share(c.told_sure, c.moments, missed=False) if leaks else ""
    cells += [told, sure, _share(c.at_once, c.tellable)] if grows else ["", "", ""]
    early, alarms = (
        _bold(str(count), missed=count > ALARMS * c.runs) for count in (c.early, c.alarms)
    )
    cells += [early, "", ""] if leaks else ["", alarms, str(c.growing)]
    cells.append(_share(c.verdicts, c.runs, missed=c.verdicts < c.runs))
    held = _share(c.held, c.crossings, missed=c.held < LOW * c.crossings)
    cells += [str(c.crossings), held, f"{c.width:.2f}"] if grows else [""] * 3
    return f"| {' | '.join(cells)} |"


def _totals(groups: dict[str, Sequence[Count]]) -> str:
    head = (
        "| runs | leaks told | as leaks | told before they began | alarms | growth told of others \
| crossings within the interval |"
    )
    rows = [head, "|---|--:|--:|--:|--:|--:|--:|"]
    most = f"at most {ALARMS:.0%}"
    asked = f"asked | at least {TOLD:.0%} | | {most} | {most} | | {LOW:.0%} to {HIGH:.0%}"
    every = [c for counts in groups.values() for c in counts]
    for name, counts in {**groups, "all": every}.items():
        leaks = [c for c in counts if c.truth == LEAK]
        others = [c for c in counts if c.truth != LEAK]
        growing = [c for c in counts if c.truth != NEITHER]
        told = sum(c.told for c in leaks) / sum(c.moments for c in leaks)
        sure = sum(c.told_sure for c in leaks) / sum(c.moments for c in leaks)
        growing_told = sum(c.growing for c in others) / sum(c.runs for c in others)
        early = sum(c.early for c in leaks) / sum(c.runs for c in leaks)
        alarms = sum(c.alarms for c in others) / sum(c.runs for c in others)
        held = sum(c.held for c in growing) / sum(c.crossings for c in growing)
        cells = [
            f"{told:.1%} ({_met(told >= TOLD)})",
            f"{sure:.1%}",
            f"{early:.1%} of {sum(c.runs for c in leaks):,} ({_met(early <= ALARMS)})",
            f"{alarms:.1%} of {sum(c.runs for c in others):,} ({_met(alarms <= ALARMS)})",
            f"{growing_told:.1%}",
            f"{held:.1%} of {sum(c.crossings for c in growing):,} ({_met(LOW <= held <= HIGH)})",
        ]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*rows, f"| {asked} |"])


def _met(met: bool) -> str:
    return "met" if met else "**MISSED**"


def _share(part: int, whole: int, *, missed: bool = False) -> str:
    return _bold(f"{part / whole:.1%}", missed=missed) if whole else ""


def _bold(text: str, *, missed: bool) -> str:
    return f"**{text}**" if missed else text


if __name__ == "__main__":
    main(sys.argv[1:])
