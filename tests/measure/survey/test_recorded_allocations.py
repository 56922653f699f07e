"""Recorded sequences of allocations, and what they become at another batch size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.measure.survey.recorded_allocations import (
    EARLIER,
    WORK_DONE,
    AllocationEvent,
    Sequences,
    mark,
    record,
    record_twice,
)
from memfit.measure.survey.run_steps import Cycle, live_peak
from memfit.model.training import FORWARD_DONE, GATHER, GATHERED, MINIBATCH

torch = pytest.importorskip("torch")


def step(batch: int) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(300, 700), torch.nn.Tanh(), torch.nn.Linear(700, 10))
    net(torch.zeros(batch, 300)).sum().backward()


def test_a_recorded_step_holds_its_tensors() -> None:
    events = record(lambda: torch.empty(1000, 1000).clone())
    assert [e.bytes for e in events if not e.free] == [4_000_000, 4_000_000]
    assert sum(-e.bytes if e.free else e.bytes for e in events) == 0


@pytest.mark.parametrize("batch", [48, 64, 200, 1000])
def test_a_small_recording_stated_at_another_batch_is_the_real_one(batch: int) -> None:
    step(8)  # the first use of a kernel may allocate more
    sequences = Sequences(
        small=record_twice(lambda: step(16)),
        large=record_twice(lambda: step(32)),
        small_batch=16,
        large_batch=32,
    )
    assert sequences.matched_share == 1
    real = Cycle.of(record_twice(lambda: step(batch)))
    assert live_peak(Cycle.of(sequences.at(batch))) == live_peak(real)


@given(st.integers(1, 50), st.integers(1, 50), st.integers(51, 10_000))
def test_every_block_is_on_its_own_line(fixed: int, slope: int, batch: int) -> None:
    def at(n: int) -> list[AllocationEvent]:
        sizes = [100 + fixed, slope * n, fixed + slope * n]
        return [AllocationEvent(i, False, s, operator=f"op{i}") for i, s in enumerate(sizes)]

    sequences = Sequences(small=at(10), large=at(20), small_batch=10, large_batch=20)
    assert sequences.at(batch) == at(batch)


def test_a_block_that_only_one_recording_has_is_stepped_over() -> None:
    names = [f"op{i % 7}" for i in range(40)]
    small = [AllocationEvent(i, False, 10 * (i + 1), operator=n) for i, n in enumerate(names)]
    large = [AllocationEvent(i, False, 20 * (i + 1), operator=n) for i, n in enumerate(names)]
    extra = AllocationEvent(999, False, 5, operator="scratch")
    large.insert(17, extra)
    sequences = Sequences(small=small, large=large, small_batch=10, large_batch=20)
    stated = {e.block: e.bytes for e in sequences.at(40)}
    assert stated[999] == 5
    assert all(stated[i] == 40 * (i + 1) for i in range(40))


def marked_work() -> object:
    mark(MINIBATCH)  # of no use in a recording
    mark(GATHER)
    gathered = torch.ones(500)
    mark(GATHERED)
    result = gathered.clone()
    mark(FORWARD_DONE)
    return result


def test_marks_stand_where_they_were_put_and_each_work_ends_with_one() -> None:
    events = record_twice(marked_work)
    made = [e.marker or e.bytes for e in events if not e.free]
    assert made == [GATHER, 2000, GATHERED, 2000, FORWARD_DONE, WORK_DONE] * 2


def test_what_the_work_returns_is_held_until_both_are_done() -> None:
    events = record_twice(marked_work)
    results = [e.block for e in events if e.operator == "aten::empty_strided" and not e.free]
    assert len(results) == 2
    last = max(i for i, e in enumerate(events) if e.marker == WORK_DONE)
    assert {e.block for e in events[last + 1 :] if e.free and e.bytes == 2000} == set(results)


def test_a_mark_is_no_memory_of_a_cycle() -> None:
    cycle = Cycle.of(record_twice(marked_work))
    assert [act.note for act in cycle.acts if act.note] == [GATHER, GATHERED, FORWARD_DONE]
    assert live_peak(cycle) == 4000
    assert cycle.kept_bytes == 2000  # its result is held to the end


def test_what_came_before_the_recording_is_released_as_earlier() -> None:
    """torch tells of the release of what it saw being made, in this recording or an earlier one."""
    held: list[object] = []
    record(lambda: held.append(torch.ones(700)))

    def replace_it() -> None:
        held[0] = torch.ones(500)

    assert [(e.block, e.free, e.bytes) for e in record(replace_it)] == [
        (0, False, 2000),
        (EARLIER, True, 2800),
    ]


def test_a_sequence_is_stated_at_its_own_size_as_it_was_recorded() -> None:
    small = [AllocationEvent(0, False, 10, operator="op")]
    large = [AllocationEvent(0, False, 30, operator="op")]
    sequences = Sequences(small=small, large=large, small_batch=1, large_batch=2)
    assert sequences.at(2) is large
    assert sequences.at(4)[0].bytes == 70
    assert sequences.at(1)[0].bytes == 10
    same = Sequences(small=small, large=large, small_batch=2, large_batch=2)
    assert same.at(9) is large


def test_the_matched_share_is_of_the_larger_recordings_bytes() -> None:
    small = [AllocationEvent(0, False, 10, operator="matmul")]
    large = [
        AllocationEvent(0, False, 30, operator="matmul"),
        AllocationEvent(1, False, 10, operator="reorder"),
    ]
    sequences = Sequences(small=small, large=large, small_batch=1, large_batch=2)
    assert sequences.matched_share == 0.75
    assert Sequences(small=[], large=[], small_batch=1, large_batch=2).matched_share == 1
