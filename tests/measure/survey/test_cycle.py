"""Cycles from recordings made by hand, and what they become at another batch."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memfit.measure.survey.cycle import ALIGNED, FREE, FREE_OLD, PLAIN, Cycle, GrowingCycle
from memfit.measure.survey.recorded_allocations import (
    EARLIER,
    WORK_DONE,
    AllocationEvent,
    Sequences,
)
from memfit.model.training import FORWARD_DONE
from tests.measure.survey.recordings import freed, made, note


def acts(cycle: Cycle) -> list[tuple[int, int, int]]:
    """What is done to which block of how many bytes."""
    columns = (cycle.kinds, cycle.slots, cycle.sizes[cycle.slots])
    return list(zip(*(column.tolist() for column in columns), strict=True))


# Each time: a tensor that the next time replaces, one that comes and goes, one that stays.
RECORDED = [
    made(0, 100, "linear"),
    made(1, 50, "tanh"),
    freed(1, 50),
    made(2, 70, "graph"),
    *note(3, WORK_DONE),
    freed(EARLIER, 999),  # of something before the recording
    made(4, 30, "numpy"),
    freed(4, 30),
    made(5, 100, "linear"),
    freed(0, 100),
    made(6, 50, "tanh"),
    *note(7, FORWARD_DONE),
    freed(6, 50),
    made(8, 70, "graph"),
    *note(9, WORK_DONE),
    freed(5, 100),  # after the end, when what the work returned is let go
]


def test_a_cycle_is_the_second_of_two() -> None:
    cycle = Cycle.of(RECORDED)
    assert acts(cycle) == [
        (PLAIN, 0, 30),
        (FREE, 0, 30),
        (ALIGNED, 1, 100),
        (FREE_OLD, 1, 100),
        (ALIGNED, 2, 50),
        (FREE, 2, 50),
        (ALIGNED, 3, 70),
    ]
    assert cycle.forward == 5
    assert cycle.left == (1, 3)
    assert cycle.kept == (3,)
    assert cycle.kept_bytes == 70


def test_what_the_first_left_without_a_successor_is_not_released_again() -> None:
    """First use: the second time has nothing of that size."""
    events = [made(0, 33), *note(1, WORK_DONE), made(2, 44), freed(0, 33), *note(3, WORK_DONE)]
    cycle = Cycle.of(events)
    assert acts(cycle) == [(ALIGNED, 0, 44)]
    assert (cycle.left, cycle.kept) == ((0,), (0,))


def test_of_equal_blocks_the_oldest_is_replaced_by_the_oldest() -> None:
    events = [made(0, 10), made(1, 10), *note(2, WORK_DONE), made(3, 10), made(4, 10), freed(1, 10)]
    cycle = Cycle.of([*events, *note(5, WORK_DONE)])
    assert acts(cycle)[-1] == (FREE_OLD, 1, 10)
    assert cycle.kept == (0,)


def test_the_live_peak_begins_with_what_the_last_cycle_left() -> None:
    # 100 are left, 100 come before they go, 50 come, 70 stay.
    assert Cycle.of(RECORDED).live_peak == 200


def test_the_live_peak_of_nothing_is_nothing() -> None:
    assert Cycle.of([*note(0, WORK_DONE), *note(1, WORK_DONE)]).live_peak == 0


def test_larger_blocks_are_larger_by_the_same_share() -> None:
    cycle = Cycle.of(RECORDED)
    assert cycle.scaled(1, 1) is cycle
    assert np.array_equal(cycle.scaled(3, 2).sizes, [45, 150, 75, 105])


def stated(small: list[AllocationEvent], larger: list[AllocationEvent], batch: int) -> list[int]:
    """The blocks of recordings at batches of 10 and 20, at another one."""
    first, second = note(5000, WORK_DONE), note(5001, WORK_DONE)
    sequences = Sequences(
        small=[*first, *small, *second],
        large=[*first, *larger, *second],
        small_batch=10,
        large_batch=20,
    )
    sizes: list[int] = GrowingCycle(sequences).at(batch).sizes.tolist()
    return sizes


@given(st.integers(1, 50), st.integers(1, 50), st.integers(1, 10_000))
def test_every_block_is_on_its_own_line(fixed: int, slope: int, batch: int) -> None:
    def sizes(n: int) -> list[int]:
        return [100 + fixed, slope * n, fixed + slope * n]

    def at(n: int) -> list[AllocationEvent]:
        return [made(i, size, f"op{i}") for i, size in enumerate(sizes(n))]

    assert stated(at(10), at(20), batch) == sizes(batch)


def test_no_block_is_smaller_than_a_byte() -> None:
    assert stated([made(0, 1)], [made(0, 2)], 1) == [1]


def test_a_block_that_only_one_recording_has_is_stepped_over() -> None:
    """The code that asked for it, one line of Python that backward passes are, asks for many."""
    small = [made(i, 10 * (i * i + 1)) for i in range(40)]
    larger = [made(i, 20 * (i * i + 1)) for i in range(40)]
    larger.insert(17, made(999, 5))
    found = stated(small, larger, 40)
    assert found.pop(17) == 5
    assert found == [40 * (i * i + 1) for i in range(40)]


def test_work_that_is_done_more_often_is_paired_as_far_as_it_goes() -> None:
    """As a line search does, which takes as many trials as it needs."""

    def trials(count: int, batch: int) -> list[AllocationEvent]:
        sizes = [size for _ in range(count) for size in (64, 10 * batch, 500 + batch)]
        return [made(i, size) for i, size in enumerate(sizes)]

    assert stated(trials(2, 10), trials(5, 20), 100)[:6] == [64, 1000, 600] * 2


def test_recordings_of_one_size_say_nothing_of_another() -> None:
    same = [*note(0, WORK_DONE), made(1, 30), *note(2, WORK_DONE)]
    sequences = Sequences(small=same, large=same, small_batch=2, large_batch=2)
    assert GrowingCycle(sequences).at(9).sizes.tolist() == [30]
