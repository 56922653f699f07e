"""Recorded sequences of allocations, and what they become at another batch size."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.measure.survey.recorded_allocations import (
    EARLIER,
    WORK_DONE,
    AllocationEvent,
    Sequences,
    Where,
    mark,
    record,
    record_twice,
    thinned,
)
from memfit.measure.survey.run_steps import Cycle, live_peak
from memfit.model.training import FORWARD_DONE

torch = pytest.importorskip("torch")


def step(batch: int) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(300, 700), torch.nn.Tanh(), torch.nn.Linear(700, 10))
    net(torch.zeros(batch, 300)).sum().backward()


def large(events: list[AllocationEvent], least: int = 1000) -> list[AllocationEvent]:
    """Allocations of data: small objects come and go beside them."""
    return [e for e in events if not e.free and e.bytes >= least]


def code(name: str) -> Where:
    return ((name, "train.py", 1),)


def test_a_recorded_step_holds_its_tensors_and_arrays() -> None:
    def work() -> None:
        torch.empty(1000, 1000).clone()
        np.zeros(300_000, np.uint8)

    events = record(work)
    made = large(events, 100_000)
    assert [(e.bytes, e.aligned) for e in made] == [
        (4_000_000, True),
        (4_000_000, True),
        (300_000, False),
    ]
    freed = {e.block for e in events if e.free}
    assert freed >= {e.block for e in made}
    assert made[0].where[0][0] == "work"


@pytest.mark.parametrize("batch", [48, 64, 200, 1000])
def test_a_small_recording_stated_at_another_batch_is_the_real_one(batch: int) -> None:
    step(8)  # the first use of a kernel may allocate more
    small, larger, whole = (record_twice(partial(step, n)) for n in (16, 32, batch))
    sequences = Sequences(small=small, large=larger, small_batch=16, large_batch=32)
    assert sequences.matched_share > 0.999
    real = live_peak(Cycle.of(whole))
    assert live_peak(Cycle.of(sequences.at(batch))) == pytest.approx(real, rel=1e-3)


@given(st.integers(1, 50), st.integers(1, 50), st.integers(51, 10_000))
def test_every_block_is_on_its_own_line(fixed: int, slope: int, batch: int) -> None:
    def at(n: int) -> list[AllocationEvent]:
        sizes = [100 + fixed, slope * n, fixed + slope * n]
        return [AllocationEvent(i, False, s, where=code(f"op{i}")) for i, s in enumerate(sizes)]

    sequences = Sequences(small=at(10), large=at(20), small_batch=10, large_batch=20)
    assert sequences.at(batch) == at(batch)


def test_a_block_that_only_one_recording_has_is_stepped_over() -> None:
    """The code that asked for it, one line of Python that backward passes are, asks for many."""
    small = [AllocationEvent(i, False, 10 * (i * i + 1)) for i in range(40)]
    larger = [AllocationEvent(i, False, 20 * (i * i + 1)) for i in range(40)]
    larger.insert(17, AllocationEvent(999, False, 5))
    sequences = Sequences(small=small, large=larger, small_batch=10, large_batch=20)
    stated = {e.block: e.bytes for e in sequences.at(40)}
    assert stated[999] == 5
    assert all(stated[i] == 40 * (i * i + 1) for i in range(40))


def test_a_long_recording_loses_small_objects_of_short_lives_first() -> None:
    """One object comes and goes at once, one lives through ten of these, one is large."""
    events: list[AllocationEvent] = []
    for i in range(10):
        first = 100 * i
        events += [AllocationEvent(first, False, 64), AllocationEvent(first + 1, False, 4096)]
        for brief in range(first + 2, first + 12):
            events += [AllocationEvent(brief, False, 32), AllocationEvent(brief, True, 32)]
        events += [AllocationEvent(first + 1, True, 4096), AllocationEvent(first, True, 64)]
    assert thinned(events, most=len(events)) == events
    without_brief = [e for e in events if e.bytes != 32]
    assert thinned(events, most=len(events) - 1) == without_brief
    assert {e.bytes for e in thinned(events, most=1)} == {4096}


def marked_work() -> object:
    mark("a word of no use in a recording")
    minibatch = torch.ones(5000)
    mark(FORWARD_DONE)
    return minibatch.clone()


def test_marks_stand_where_they_were_put_and_each_work_ends_with_one() -> None:
    """Of the first work only what it leaves is told."""
    made = [e.marker or e.bytes for e in large(record_twice(marked_work))]
    assert made == [20_000, WORK_DONE, 20_000, FORWARD_DONE, 20_000, WORK_DONE]


def test_what_the_work_returns_is_held_until_both_are_done() -> None:
    events = record_twice(marked_work)
    first, _, second = (e.block for e in large(events) if not e.marker)
    last = max(i for i, e in enumerate(events) if e.marker == WORK_DONE)
    assert {e.block for e in events[last + 1 :] if e.free and e.bytes == 20_000} == {first, second}


def test_a_mark_is_no_memory_of_a_cycle() -> None:
    cycle = Cycle.of(record_twice(marked_work))
    assert [act.note for act in cycle.acts if act.note] == [FORWARD_DONE]
    assert live_peak(cycle) == pytest.approx(40_000, abs=4000)  # with their small objects
    assert cycle.kept_bytes == pytest.approx(20_000, abs=2000)  # its result is held to the end


def test_what_came_before_the_recording_is_released_as_earlier() -> None:
    held = [torch.ones(7000)]

    def replace_it() -> None:
        held[0] = torch.ones(5000)

    events = record(replace_it)
    (new,) = (i for i, e in enumerate(events) if e.bytes == 20_000)
    assert any(e.block == EARLIER and e.free for e in events[new:])


def test_a_sequence_is_stated_at_its_own_size_as_it_was_recorded() -> None:
    small = [AllocationEvent(0, False, 20)]
    larger = [AllocationEvent(0, False, 30)]
    sequences = Sequences(small=small, large=larger, small_batch=1, large_batch=2)
    assert sequences.at(2) is larger
    assert sequences.at(4)[0].bytes == 50
    assert sequences.at(1)[0].bytes == 20
    same = Sequences(small=small, large=larger, small_batch=2, large_batch=2)
    assert same.at(9) is larger


def test_work_that_is_done_more_often_is_paired_as_far_as_it_goes() -> None:
    """As a line search does, which takes as many trials as it needs."""

    def trials(count: int, batch: int) -> list[AllocationEvent]:
        sizes = [size for _ in range(count) for size in (64, 10 * batch, 500 + batch)]
        return [AllocationEvent(i, False, size) for i, size in enumerate(sizes)]

    sequences = Sequences(small=trials(2, 10), large=trials(5, 20), small_batch=10, large_batch=20)
    assert [e.bytes for e in sequences.at(100)][:6] == [64, 1000, 600] * 2


def test_the_matched_share_is_of_the_larger_recordings_bytes() -> None:
    small = [AllocationEvent(0, False, 15, where=code("matmul"))]
    larger = [
        AllocationEvent(0, False, 30, where=code("matmul")),
        AllocationEvent(1, False, 10, where=code("reorder")),
    ]
    sequences = Sequences(small=small, large=larger, small_batch=1, large_batch=2)
    assert sequences.matched_share == 0.75
    assert Sequences(small=[], large=[], small_batch=1, large_batch=2).matched_share == 1
