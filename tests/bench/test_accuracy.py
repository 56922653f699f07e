"""Drawn runs, how they are counted, and what calibrates a bound: known answers."""

from __future__ import annotations

import json

import pytest
from benchmarks.accuracy.calibrate import place
from benchmarks.accuracy.case import Case
from benchmarks.accuracy.draw import draw
from benchmarks.accuracy.report import Pair, interval

CASE = Case("one", "drawn.py", (), ("PPO", "mlp", "small"))


def said(peak: int, upper: int) -> dict[str, object]:
    return {"peak_bytes": peak, "upper_bytes": upper}


def test_a_seed_draws_the_same_runs_and_another_seed_others() -> None:
    first, again, other = draw(7, 10), draw(7, 10), draw(8, 10)
    assert [case.args for case in first] == [case.args for case in again]
    assert not {case.args for case in first} & {case.args for case in other}


def test_a_longer_draw_begins_with_the_shorter_one() -> None:
    assert [case.args for case in draw(7, 12)[:5]] == [case.args for case in draw(7, 5)]


def test_two_of_five_runs_are_large() -> None:
    sizes = [case.covers[2] for case in draw(3, 10)]
    assert (sizes.count("large"), sizes.count("middle"), sizes.count("small")) == (4, 4, 2)


def test_runs_are_what_the_script_takes() -> None:
    for case in draw(11, 40):
        run = json.loads(case.args[0])
        assert run["timesteps"] > 0 and run["n_envs"] >= 1
        assert run["settings"].get("batch_size", 16) >= 2


def test_a_run_is_compared_by_the_median_of_its_peaks_and_each_with_the_bound() -> None:
    pair = Pair(CASE, (1000, 1100, 990), 500, said(1020, 1050))
    assert pair.true == 1000
    assert pair.error == pytest.approx(0.02)
    assert pair.added_error == pytest.approx(0.04)
    assert pair.slack == pytest.approx(0.05)
    assert pair.broken == 1
    assert pair.verdicts == [True] * 8


def test_what_was_not_answered_is_a_miss_in_every_figure() -> None:
    pair = Pair(CASE, (1000, 1000, 1000), 500, None)
    assert (pair.error, pair.broken, pair.slack) == (1.0, 3, -1.0)
    assert pair.verdicts == [False] * 8


@pytest.mark.parametrize(
    ("hits", "count", "low", "high"),
    [(0, 150, 0.0, 0.0243), (5, 100, 0.0164, 0.1128), (10, 10, 0.6915, 1.0)],
)
def test_the_interval_of_a_share_is_the_exact_one(
    hits: int, count: int, low: float, high: float
) -> None:
    assert interval(hits, count) == pytest.approx((low, high), abs=1e-4)


def test_the_place_that_covers_99_of_100_new_runs() -> None:
    assert place([float(i) for i in range(1, 51)]) == 50  # too few to leave one out
    assert place([float(i) for i in range(1, 200)]) == 198
