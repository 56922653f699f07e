"""Growth that slows down: told from leaks of any kind of step, and forecast."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

import pytest

from memfit.analyses.forecast import forecast, verdict
from memfit.model import Growth, Reading
from memfit.units import MIB

Curve = Callable[[float], float]  # MiB by seconds


def run(curve: Curve, seconds: float) -> list[Reading]:
    times = [i / 4 for i in range(int(4 * seconds))]
    return [Reading(seconds=s, bytes=int((300 + curve(s)) * MIB)) for s in times]


def updates(seconds: float) -> float:
    return 40.0 if seconds % 7 < 3 else 0.0


@pytest.mark.parametrize(
    "curve",
    [
        pytest.param(lambda s: 200 * -math.expm1(-s / 60), id="approach"),
        pytest.param(lambda s: 200 * -math.expm1(-max(0, s - 15) / 40), id="after a pause"),
        pytest.param(lambda s: 12 * math.sqrt(s), id="root"),
        pytest.param(lambda s: 60 * math.log1p(s / 10), id="logarithm"),
        pytest.param(lambda s: 12 * math.sqrt(s) + updates(s), id="below updates"),
    ],
)
def test_what_slows_down_is_no_leak_at_any_time(curve: Curve) -> None:
    whole = run(curve, 300)
    for until in range(5, 300, 5):
        assert not forecast(whole[: 4 * until], None).growth.at_one_pace, until
    assert verdict(whole, None).growth is not Growth.LEAKING


def test_it_is_told_as_filling_with_its_end() -> None:
    found = forecast(run(lambda s: 200 * -math.expm1(-s / 60), 90), 4096 * MIB)
    assert found.growth is Growth.FILLING and found.slowing
    assert found.ends_at_bytes == pytest.approx(500 * MIB, rel=0.05)
    assert found.reaches_limit_at is None
    assert found.bytes_per_second == pytest.approx(200 / 60 * math.exp(-1.5) * MIB, rel=0.2)


def test_a_limit_below_its_end_is_reached_later_than_at_its_present_pace() -> None:
    curve: Curve = lambda s: 200 * -math.expm1(-s / 60)  # noqa: E731
    found = forecast(run(curve, 90), 480 * MIB)
    truly = -60 * math.log(1 - 180 / 200)
    assert found.reaches_limit_at == pytest.approx(truly, rel=0.1)
    assert found.low is not None and found.low < truly and found.high is None


@pytest.mark.parametrize("seed", range(5))
def test_a_leak_of_uneven_steps_stays_a_leak(seed: int) -> None:
    draw, at, marks = Random(seed), 0.0, []
    while at < 400:
        at += draw.expovariate(1 / 3)
        marks.append((at, draw.uniform(1, 5)))
    whole = run(lambda s: sum(step for mark, step in marks if mark <= s), 400)
    assert verdict(whole, None).growth is Growth.LEAKING


def test_a_leak_beside_a_cache_is_told_once_the_cache_is_full() -> None:
    whole = run(lambda s: 100 * -math.expm1(-s / 20) + s, 300)
    assert forecast(whole, None).growth is Growth.LEAKING


def test_a_leak_that_goes_on_slower_than_before_is_one() -> None:
    """Two paces, one after the other, are no slowing down."""
    whole = run(lambda s: 4 * min(s, 60) + 0.5 * max(0, s - 60), 400)
    assert forecast(whole, None).growth is Growth.LEAKING
