"""The sizes at which a run fills a machine follow from what it takes at others."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from memfit.measure.survey.filling_sizes import FILLED, replayed_where_filled
from memfit.units import GIB, MIB

KNOBS = {"agents": 20, "steps": 100, "length": 1_000}
LARGER = {"agents": 40, "steps": 100, "length": 800}  # a run is longer than what makes it larger


def filled(growth: Callable[[int], int]) -> list[dict[str, int]]:
    """Where a run is replayed that grows so with its agents, beside 1 GiB."""

    def replay(knobs: Mapping[str, int]) -> dict[str, int]:
        return {"rollout": 0, "update": growth(knobs["agents"])}

    found = replayed_where_filled(
        replay,
        knobs=KNOBS,
        larger=LARGER,
        warm=GIB,
        growth=(replay(KNOBS), replay(LARGER)),
    )
    assert [one.growth for one in found] == [replay(one.knobs) for one in found]
    return [dict(one.knobs) for one in found]


def test_they_lie_on_the_line_through_both_sizes() -> None:
    assert FILLED == (8 * GIB, 24 * GIB)
    small, large = filled(lambda agents: agents * 32 * MIB)
    assert small == {"agents": 7 * 32, "steps": 100, "length": 400 * 7 * 32 // 20}
    assert large == {"agents": 23 * 32, "steps": 100, "length": 400 * 23 * 32 // 20}


def test_each_replay_tells_better_where_the_next_machine_is_full() -> None:
    """Up to 40 agents each takes twice as much as any later one."""
    small, large = filled(lambda agents: (agents + min(agents, 40)) * 32 * MIB)
    assert small["agents"] == 7 * 16
    line = 23 * 16  # where two small sizes had said that 24 GiB are full
    assert line + 200 < large["agents"] < 23 * 32 - 40


def test_a_run_that_is_too_large_is_replayed_smaller() -> None:
    (small,) = filled(lambda agents: agents * GIB)  # where 24 GiB are filled is near
    assert small["agents"] == 7
    assert len(filled(lambda agents: agents * 2 * GIB)) == 2


def test_a_run_that_takes_less_when_it_is_a_little_larger_fills_a_machine_all_the_same() -> None:
    small, large = filled(lambda agents: (agents + (100 if agents == 20 else 0)) * 32 * MIB)
    assert 40 < small["agents"] < large["agents"]


def test_a_run_that_does_not_grow_fills_no_machine() -> None:
    assert filled(lambda agents: 5) == filled(lambda agents: -agents) == []
    assert filled(lambda agents: agents) == []
