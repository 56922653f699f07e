"""The corpus of leaks: half of it leaks, families do what they say, what fails is wrong."""

from __future__ import annotations

import math
import random

import pytest
from benchmarks.leaks import table
from benchmarks.leaks.__main__ import all_cases
from benchmarks.leaks.bare import episodes, mean
from benchmarks.leaks.cases import REPORT, TUNING, families, make

# These leave files, threads, processes, or a collector that is off, in the process that plays them.
NOT_HERE = (
    "AtTheEnd",
    "CyclesNotCollected",
    "EntitiesWithFinalizers",
    "FinishedTasks",
    "FrozenForks",
    "MappedFiles",
    "OpenFiles",
    "PendingTasks",
    "ReusedSegments",
    "RowsOfADatabase",
    "SegmentsInTurns",
    "SharedSegments",
    "Sockets",
    "TablesInMemory",
    "Threads",
)
QUIET = [
    name
    for name, family in families(*TUNING, *REPORT).items()
    if not family.TORCH and name not in NOT_HERE
]


def test_the_corpus_is_as_large_and_as_even_as_it_says() -> None:
    cases = all_cases()
    leaking = sum(case.leaks for case in cases)
    assert len(cases) >= 300 and len({case.family for case in cases}) >= 20
    assert 0.4 < leaking / len(cases) < 0.6
    late = {case.family for case in cases if case.report_only}
    assert len(late) >= len({case.family for case in cases}) / 3
    assert not set(families(*TUNING)) & set(families(*REPORT))


def test_a_case_is_the_same_each_time() -> None:
    first, again = (make("NumpyAtStep", 7) for _ in range(2))
    assert (first.length, first.name, first.a) == (again.length, again.name, again.a)
    assert 1024 <= first.a <= 32768


@pytest.mark.parametrize("family", QUIET)
def test_every_family_can_be_played(family: str) -> None:
    env = make(family, 3)
    assert episodes(env, 4, random.Random(0)) >= 4 * 4


def row(family: str, *, leaks: bool, verdict: str, **more: object) -> dict[str, object]:
    return {"family": family, "leaks": leaks, "verdict": verdict, "why": "so", **more}


def test_what_fails_counts_as_wrong() -> None:
    verdicts = {
        "NumpyAtReset-1": row(
            "NumpyAtReset",
            leaks=True,
            verdict="leaking",
            bytes_per_frame=104.0,
            holder="env.log",
            holders=["env.log[*]"],
        ),
        "NumpyAtReset-2": row("NumpyAtReset", leaks=True, verdict="failed"),
        "Clean-1": row("Clean", leaks=False, verdict="stable"),
        "Clean-2": row("Clean", leaks=False, verdict="failed"),
    }
    truths = {"NumpyAtReset-1": {"truth_per_frame": 100.0, "truth_per_episode": 2000.0}}
    said = {"tracemalloc": True, "repeated": False, "snapshots": "failed"}
    rivals = {
        name: {**said, "leaks": one["leaks"], "memfit": name == "NumpyAtReset-1"}
        for name, one in verdicts.items()
    }
    page = table.page(verdicts, truths, rivals, {}, [])
    assert "| leaks found | 97 % | 1 of 2 (50.0%)" in page
    assert "| false alarms | 1 % at most | 1 of 2 (50.0%)" in page
    assert "| holder named first, where Python has one | 90 % | 1 of 2 (50.0%)" in page
    assert "1 of 1 (100.0%), median 4.0%" in page
    assert "RLlib's statistic (tracemalloc) | 2 of 2 (100.0%) | 2 of 2 (100.0%)" in page
    assert "first against last snapshot (1 MiB) | 0 of 2 (0.0%) | 2 of 2" in page
    assert "- Clean-2: failed" in page


def test_a_miss_stays_one_where_plain_loops_differ_as_much() -> None:
    off = row("AlignedNative", leaks=True, verdict="leaking", bytes_per_frame=192.0)
    truths = {"AlignedNative-1": {"truth_per_frame": 128.0, "truth_per_episode": 3000.0}}
    page = table.page({"AlignedNative-1": off}, truths, {}, {}, [], {"AlignedNative-1": [128, 192]})
    assert "0 of 1 (0.0%), median 50.0%" in page
    assert "AlignedNative-1 +50.0%" in page and "AlignedNative-1 128 to 192 (192)" in page


@pytest.mark.parametrize("end", [4100, 5000, 6000, 8000])
def test_the_truth_of_a_table_that_doubles_is_the_same_wherever_a_run_ends(end: int) -> None:
    points = [(n, 100 * n + 50 * (1 << n.bit_length())) for n in range(20, end + 1, 20)]
    assert mean(points) == pytest.approx(100 + 50 / math.log(2), rel=0.01)
    steady = [(n, 100 * n) for n in range(20, end + 1, 20)]
    assert mean(steady) == pytest.approx(100)
    assert mean(steady[:1]) == 100
