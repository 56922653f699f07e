"""The benchmark of forecasts: from when growth can be told, and how runs are counted."""

from __future__ import annotations

from random import Random

from benchmarks.forecast import kinds_report, kinds_tuning
from benchmarks.forecast.count import MOMENTS, Count, count
from benchmarks.forecast.runs import LEAK, MIB, NEITHER, Run

from memfit.model import Reading


def run(rate: float, truth: str, base: int = 500) -> Run:
    """Four minutes, with a reading each half second."""
    grown = [int(rate * i / 2 * MIB) for i in range(480)]
    readings = [Reading(seconds=i / 2, bytes=base * MIB + added) for i, added in enumerate(grown)]
    return Run(kind="x", truth=truth, readings=readings, grown=grown)


def test_a_leak_can_be_told_after_20_mib_and_2_percent() -> None:
    assert run(1, LEAK).tellable == 40  # 20 MiB
    assert run(1, LEAK, base=2000).tellable == 82  # 41 MiB of 2041
    assert run(0, NEITHER).tellable is None


def test_what_is_not_told_is_a_miss_of_every_figure() -> None:
    seen, stepped = Count(kind="x", truth=LEAK), Count(kind="x", truth=LEAK)
    count(seen, run(1, LEAK), Random(0))
    assert (seen.runs, seen.moments, seen.verdicts) == (1, MOMENTS, 1)
    assert seen.told == seen.held == seen.crossings == MOMENTS
    jump = [500 * MIB + (i > 300) * 200 * MIB for i in range(480)]
    readings = [Reading(seconds=i / 2, bytes=amount) for i, amount in enumerate(jump)]
    grown = [amount - 500 * MIB for amount in jump]
    count(stepped, Run(kind="x", truth=LEAK, readings=readings, grown=grown), Random(0))
    assert (stepped.told, stepped.held, stepped.verdicts) == (0, 0, 0)


def test_a_leak_that_is_none_is_an_alarm() -> None:
    found = Count(kind="x", truth=NEITHER)
    count(found, run(1, NEITHER), Random(0))
    count(found, run(0, NEITHER), Random(0))
    assert (found.runs, found.alarms, found.verdicts) == (2, 1, 1)


def test_a_third_of_the_kinds_is_for_the_report_alone() -> None:
    tuning, report = set(kinds_tuning.KINDS), set(kinds_report.KINDS)
    assert not tuning & report and len(report) >= len(tuning | report) / 3
