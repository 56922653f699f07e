"""Histories replayed: our own small programs, and those of real cards where their data is."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.device.allocator_settings import AllocatorSettings, recorded_settings
from memfit.device.caching_allocator import CachingAllocator
from memfit.device.replay import replay, what_if
from memfit.model.device_snapshot import DeviceBlock, DeviceEvent, DeviceSegment, DeviceSnapshot
from memfit.units import MIB
from tests.device.programs import Program
from tests.device.test_caching_allocator import SIZES

# Histories of real cards are data of others, and lie beside the project where there are any.
REAL = [
    found
    for above in Path(__file__).parents[3:]
    for found in sorted((above / "shared" / "data" / "device").glob("snapshot_*.json.gz"))
]
SETTINGS = st.sampled_from(
    [{}, {"max_split_size": 25 * MIB}, {"expandable_segments": True}],
)
ACTION = st.one_of(
    st.tuples(st.just("ask"), SIZES),
    st.tuples(st.just("drop"), st.integers(0, 100)),
    st.tuples(st.just("wait"), st.integers(0, 100)),
    st.tuples(st.just("done"), st.integers(0, 100)),
    st.tuples(st.just("empty"), st.just(0)),
)


def run(program: Program, actions: list[tuple[str, int]]) -> None:
    for action, number in actions:
        if program.ran_out:
            break
        if action == "ask":
            program.ask(number, number % 2)
        elif action == "empty":
            program.empty()
        elif action == "done":
            program.done(number)
        else:
            program.drop(number, waits=action == "wait")


@given(st.lists(ACTION, max_size=50), st.lists(ACTION, max_size=50), SETTINGS, st.booleans())
def test_a_history_that_begins_in_the_middle_is_replayed_exactly(
    before: list[tuple[str, int]],
    recorded: list[tuple[str, int]],
    settings: dict[str, object],
    narrow: bool,
) -> None:
    """Whatever a program asked for, with retries where memory is short."""
    capacity = 120 * MIB if narrow else None
    allocator = CachingAllocator(recorded_settings(settings), capacity=capacity)
    program = Program(allocator, record=False)
    run(program, before)
    program.record = True
    allocator.usage.peak_reserved = allocator.usage.reserved
    run(program, recorded)
    found = replay(program.snapshot(settings))
    assert found.missed == 0
    assert found.same_address == found.blocks
    assert found.same_segments == found.segments
    assert found.others == 0
    assert found.usage.peak_reserved == found.recorded_peak == allocator.usage.peak_reserved


def test_what_really_happened_is_told_from_what_the_rules_say() -> None:
    """A request that got another block, and a segment that there was no need of, are noticed."""
    program = Program(CachingAllocator())
    program.ask(30 * MIB)
    program.drop(0)
    program.ask(30 * MIB)
    snapshot = program.snapshot()
    wrong = DeviceEvent("segment_alloc", 7 * 2**40, 30 * MIB)
    moved = DeviceEvent("alloc", 7 * 2**40, 30 * MIB)
    segment = DeviceSegment(
        7 * 2**40, 30 * MIB, 0, False, (DeviceBlock(7 * 2**40, 30 * MIB, 30 * MIB, True),)
    )
    changed = DeviceSnapshot(
        device=0,
        segments=(*(s for s in _without_blocks(snapshot)), segment),
        events=(*snapshot.events[:-1], wrong, moved),
    )
    found = replay(changed)
    assert (found.blocks, found.same_address) == (2, 1)
    assert (found.segments, found.same_segments) == (2, 1)


def _without_blocks(snapshot: DeviceSnapshot) -> list[DeviceSegment]:
    return [
        DeviceSegment(
            s.address, s.size, s.stream, s.small, (DeviceBlock(s.address, s.size, 0, False),)
        )
        for s in snapshot.segments
    ]


def test_other_settings_would_have_avoided_running_out() -> None:
    """Holes of 20 MiB, none of which holds 50 MiB."""
    program = Program(CachingAllocator(capacity=200 * MIB))
    program.ask(200 * MIB)
    program.drop(0)
    for _ in range(10):
        program.ask(20 * MIB)
    for hole in (8, 6, 4, 2):
        program.drop(hole)
    program.ask(50 * MIB)
    assert program.ran_out
    snapshot = program.snapshot()
    assert what_if(snapshot, AllocatorSettings(), 200 * MIB).fits is False
    grown = what_if(snapshot, AllocatorSettings(expandable_segments=True), 200 * MIB)
    assert grown.fits is True
    assert grown.peak_reserved <= 200 * MIB
    split = what_if(snapshot, AllocatorSettings(max_split_size=25 * MIB), 200 * MIB)
    assert split.fits is True


def real(path: Path) -> tuple[dict[str, int], DeviceSnapshot]:
    """A snapshot of a real card, as the data beside the project has it."""
    found = json.loads(gzip.decompress(path.read_bytes()))
    segments = tuple(
        DeviceSegment(
            s["address"],
            s["total_size"],
            s["stream"],
            s["segment_type"] == "small",
            tuple(DeviceBlock(a, n, n, state == "active_allocated") for n, state, a in s["blocks"]),
        )
        for s in found["segments"]
    )
    events = tuple(DeviceEvent(*event) for event in found["events"])
    settings = found["allocator_settings"]
    return found, DeviceSnapshot(device=0, segments=segments, events=events, settings=settings)


@pytest.mark.skipif(not REAL, reason="needs ../shared/data/device: histories of real cards")
def test_every_block_and_segment_of_real_cards_is_decided_as_it_was() -> None:
    for path in REAL:
        said, snapshot = real(path)
        found = replay(snapshot)
        assert found.missed == 0, path.name
        assert found.same_address == found.blocks > 1000, path.name
        assert found.same_segments == found.segments, path.name
        assert found.others == 0, path.name
        assert found.usage.peak_reserved == said["peak_reserved"], path.name
