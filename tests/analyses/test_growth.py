"""Growth for good, told from all that only looks like it."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from memfit.analyses.forecast import forecast, verdict
from memfit.analyses.growth import start_over, thinned
from memfit.model import Forecast, Growth, Member, Reading
from memfit.units import MIB

Curve = Callable[[float], float]  # MiB by seconds


def run(curve: Curve, seconds: float, processes: Curve = lambda s: 1) -> list[Reading]:
    times = [i / 4 for i in range(int(4 * seconds))]
    return [
        Reading(seconds=s, bytes=int(curve(s) * MIB), processes=int(processes(s))) for s in times
    ]


def imports(seconds: float) -> float:
    """300 MiB within six seconds."""
    return min(300.0, 50 * seconds)


def judged(curve: Curve, seconds: float) -> Forecast:
    return forecast(run(curve, seconds), 4096 * MIB)


@pytest.mark.parametrize("seconds", [3, 5, 6, 8])
def test_importing_is_no_growth(seconds: float) -> None:
    """A warning that the limit is reached in seconds came five seconds after the start."""
    found = judged(imports, seconds)
    assert (found.growth, found.reaches_limit_at) == (Growth.UNKNOWN, None)


def test_a_short_clean_run_is_no_leak() -> None:
    """An env run of four seconds was told as leaking by 40 MiB a second."""
    short = run(lambda s: 40 * s, 4)
    assert verdict(short, None).growth is Growth.UNKNOWN


def test_a_leak_after_the_start_is_told_with_its_time() -> None:
    found = judged(lambda s: imports(s) + max(0, s - 8) * 5, 60)
    assert found.growth is Growth.GROWING
    assert found.bytes_per_second == pytest.approx(5 * MIB, rel=0.05)
    assert found.low is not None and found.high is not None
    assert found.low <= 8 + (4096 - 300) / 5 <= found.high


def test_what_grows_at_one_pace_is_a_leak_once_that_has_lasted() -> None:
    whole = run(lambda s: imports(s) + max(0, s - 8) * 5, 240)
    told = [forecast(whole[: 4 * until], None).growth for until in range(20, 240, 20)]
    assert told == sorted(told, key=[Growth.UNKNOWN, Growth.GROWING, Growth.LEAKING].index)
    assert {*told} == {Growth.UNKNOWN, Growth.GROWING, Growth.LEAKING}
    assert forecast(whole[: 4 * 60], 900 * MIB).condition == " if it goes on so"
    assert forecast(whole, 9000 * MIB).condition == ""


def test_a_run_that_grew_to_its_end_has_leaked() -> None:
    short = run(lambda s: imports(s) + max(0, s - 8) * 5, 50)
    assert forecast(short, None).growth is Growth.GROWING
    assert verdict(short, None).growth is Growth.LEAKING


def test_a_leak_stays_one_to_the_end_of_a_run_that_is_killed() -> None:
    """A run that leaked for 124 s until it was killed was told as stable at its end."""
    leaking = run(lambda s: imports(s) + max(0, s - 8) * 12, 132)
    fallen = [Reading(seconds=132 + i / 4, bytes=(900 - 200 * i) * MIB) for i in range(4)]
    assert verdict([*leaking, *fallen], 1800 * MIB).growth is Growth.LEAKING


@pytest.mark.parametrize(
    "curve",
    [
        pytest.param(imports, id="plateau"),
        pytest.param(lambda s: imports(s) + (s > 40) * 200, id="first update"),
        pytest.param(lambda s: imports(s) + 150 * (s > 8 and s % 20 < 8), id="updates"),
        pytest.param(lambda s: imports(s) + 80 * ((s % 10) / 10), id="rollouts"),
        pytest.param(lambda s: imports(s) + 900 * (s % 45 < 1), id="spikes"),
        pytest.param(lambda s: imports(s) + 90 * (1 - math.exp(-s / 8)), id="warming up"),
        pytest.param(lambda s: imports(s) + 60 * sum(s > t for t in (20, 45, 90)), id="steps"),
    ],
)
def test_what_only_looks_like_growth_is_never_told_as_a_leak(curve: Curve) -> None:
    whole = run(curve, 200)
    for until in range(20, 801, 20):
        assert not forecast(whole[:until], 2048 * MIB).growth.at_one_pace, until / 4
    assert verdict(whole, None).growth is Growth.STABLE


def test_workers_that_start_one_by_one_are_the_start() -> None:
    def workers(seconds: float) -> float:
        return min(8, 1 + seconds // 4)

    readings = run(lambda s: imports(s) + 100 * (workers(s) - 1), 26, processes=workers)
    assert start_over(readings) == 24.0  # when the seventh worker came
    assert forecast(readings, None).growth is Growth.UNKNOWN


def test_the_worker_that_leaks_is_named() -> None:
    tree = run(lambda s: imports(s) + max(0, s - 8) * 2, 120)
    still = Member(pid=11, name="worker 0", readings=tuple(run(lambda s: 100, 120)))
    leaks = Member(
        pid=12, name="worker 1", readings=tuple(run(lambda s: 100 + max(0, s - 8) * 2, 120))
    )
    found = forecast(tree, None, [still, leaks])
    assert (found.growth, found.members) == (Growth.LEAKING, ("12 (worker 1)",))


def test_many_readings_keep_their_lows_and_highs() -> None:
    many = [Reading(seconds=float(i), bytes=(i * 7919) % 10_007) for i in range(20_000)]
    few = thinned(many)
    assert len(few) <= 1300
    assert min(r.bytes for r in few) == 0 and max(r.bytes for r in few) == 10_006
    assert [r.seconds for r in few] == sorted(r.seconds for r in few)
