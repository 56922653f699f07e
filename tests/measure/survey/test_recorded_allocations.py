"""Recorded sequences of allocations, and what they become at another batch size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.measure.survey.recorded_allocations import AllocationEvent, Sequences, live_peak, record

torch = pytest.importorskip("torch")


def step(batch: int) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(300, 700), torch.nn.Tanh(), torch.nn.Linear(700, 10))
    net(torch.zeros(batch, 300)).sum().backward()


def test_a_recorded_step_holds_its_tensors() -> None:
    events = record(lambda: torch.empty(1000, 1000).clone())
    assert live_peak(events) == 2 * 4_000_000
    assert sum(-e.bytes if e.free else e.bytes for e in events) == 0


@pytest.mark.parametrize("batch", [48, 64, 200, 1000])
def test_a_small_recording_stated_at_another_batch_is_the_real_one(batch: int) -> None:
    step(8)  # the first use of a kernel may allocate more
    sequences = Sequences(
        small=record(lambda: step(16)),
        large=record(lambda: step(32)),
        small_batch=16,
        large_batch=32,
    )
    assert sequences.matched_share == 1
    assert live_peak(sequences.at(batch)) == live_peak(record(lambda: step(batch)))


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
