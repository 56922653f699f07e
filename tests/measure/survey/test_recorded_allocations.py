"""Recorded sequences of allocations, and what they become at another batch size."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from memfit.measure.survey.cycle import Cycle, GrowingCycle
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
@pytest.mark.parametrize("recorded", [(16, 32), (21, 43), (89, 179)])
def test_a_small_recording_stated_at_another_batch_is_the_real_one(
    batch: int, recorded: tuple[int, int]
) -> None:
    """Half of an odd size is not a half: blocks then grow by a ratio that no float is."""
    step(8)  # the first use of a kernel may allocate more
    small, larger, whole = (record_twice(partial(step, n)) for n in (*recorded, batch))
    few, many = recorded
    sequences = Sequences(small=small, large=larger, small_batch=few, large_batch=many)
    assert sequences.matched_share > 0.999
    real = Cycle.of(whole).live_peak
    assert GrowingCycle(sequences).at(batch).live_peak == pytest.approx(real, rel=1e-3)


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
    assert cycle.forward is not None
    assert cycle.live_peak == pytest.approx(40_000, abs=4000)  # with their small objects
    assert cycle.kept_bytes == pytest.approx(20_000, abs=2000)  # its result is held to the end


def test_what_came_before_the_recording_is_released_as_earlier() -> None:
    held = [torch.ones(7000)]

    def replace_it() -> None:
        held[0] = torch.ones(5000)

    events = record(replace_it)
    (new,) = (i for i, e in enumerate(events) if e.bytes == 20_000)
    assert any(e.block == EARLIER and e.free for e in events[new:])


def test_the_matched_share_is_of_the_larger_recordings_bytes() -> None:
    small = [AllocationEvent(0, False, 15, where=code("matmul"))]
    larger = [
        AllocationEvent(0, False, 30, where=code("matmul")),
        AllocationEvent(1, False, 10, where=code("reorder")),
    ]
    sequences = Sequences(small=small, large=larger, small_batch=1, large_batch=2)
    assert sequences.matched_share == 0.75
    assert Sequences(small=[], large=[], small_batch=1, large_batch=2).matched_share == 1
