"""What held a card's memory at its peak, or where it ran out, and what would have helped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from memfit.device.allocator_settings import LARGEST_SMALL, LEAST_OWN, recorded_settings
from memfit.device.history import CardState, Start, start_of
from memfit.device.phases import BEFORE, PhaseTimes, phase_of_stack, place_of_stack
from memfit.device.replay import what_if
from memfit.model.device_explanation import (
    DeviceExplanation,
    DeviceMoment,
    HeldPart,
    HeldStack,
    OtherSettings,
    OutOfDeviceMemory,
)
from memfit.model.device_snapshot import DeviceBlock, DeviceSegment, DeviceSnapshot
from memfit.units import MIB, format_bytes

_POINTS = 60  # of the timeline
_SPLITS = (64, 128, 256, 512)  # MiB
_RESERVING = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
_RAN_OUT, _PEAK, _END = "where it ran out of memory", "at the peak", "when it was taken"
SMALL, MIDDLE, LARGE = "up to 1 MiB", "1 MiB to 10 MiB", "10 MiB and more"


def explain_card(
    snapshot: DeviceSnapshot, progress: Callable[[str], None] | None = None
) -> DeviceExplanation:
    """One card of a snapshot."""
    start = start_of(snapshot)
    amounts = list(_amounts(snapshot, start))
    moment, at = _moment(snapshot, amounts)
    segments, times = _state_after(snapshot, start, at), _asked_at(snapshot, at)
    blocks = [b for s in segments for b in s.blocks if b.busy]
    active = sum(b.size for b in blocks)
    reserved = sum(s.size for s in segments)
    unused = sum(s.size for s in segments if not any(b.busy for b in s.blocks))
    phases = PhaseTimes(snapshot.annotations)

    def phase(block: DeviceBlock) -> str:
        if block.address not in times and snapshot.events and not block.stack:
            return BEFORE
        return phases.at(times.get(block.address, 0)) or phase_of_stack(block.stack)

    ran_out = None
    if moment == _RAN_OUT:
        event = snapshot.events[at - 1]
        ran_out = OutOfDeviceMemory(asked=event.size, free=event.free or max(event.address, 0))
    if progress is not None:
        progress(f"cuda:{snapshot.device}: asking what other settings would have done")
    others = tuple(_others(snapshot, start, ran_out, reserved))
    return DeviceExplanation(
        device=snapshot.device,
        moment=moment,
        at_event=at,
        events=len(snapshot.events),
        allocated=sum(b.size for b in blocks if b.allocated),
        waiting=sum(b.size for b in blocks if b.waits),
        rounding=sum(max(0, b.size - b.requested) for b in blocks),
        reserved=reserved,
        split=reserved - active - unused,
        cached=unused,
        largest_free=max(_holes(segments), default=0),
        segments=len(segments),
        peak_allocated=max((a for a, _ in amounts), default=active),
        peak_reserved=max((r for _, r in amounts), default=reserved),
        phases=_parts(blocks, phase),
        sizes=_parts(blocks, _size_class),
        stacks=_stacks(blocks),
        timeline=tuple(_timeline(amounts, at)),
        ran_out=ran_out,
        others=others,
        notes=tuple(_notes(snapshot, start, others)),
    )


def _amounts(snapshot: DeviceSnapshot, start: Start) -> Iterator[tuple[int, int]]:
    """Bytes in blocks of tensors and of the driver, before the first event and after each."""
    settings = recorded_settings(snapshot.settings)
    sizes = {b.address: b.size for _, b in start.live if b.allocated}
    allocated, reserved = sum(sizes.values()), start.reserved
    yield allocated, reserved
    for event in snapshot.events:
        if event.action == "alloc":
            size = sizes[event.address] = settings.rounded(event.size)
            allocated += size
        elif event.action == "free_requested":
            allocated -= sizes.pop(event.address, 0)
        else:
            reserved += _RESERVING.get(event.action, 0) * event.size
        yield allocated, reserved


def _moment(snapshot: DeviceSnapshot, amounts: list[tuple[int, int]]) -> tuple[str, int]:
    """Which moment to explain, and after how many events it is."""
    for number in range(len(snapshot.events), 0, -1):
        if snapshot.events[number - 1].action == "oom":
            return _RAN_OUT, number
    if not snapshot.events:
        return _END, 0
    return _PEAK, max(range(len(amounts)), key=lambda n: amounts[n][0])


def _state_after(snapshot: DeviceSnapshot, start: Start, at: int) -> tuple[DeviceSegment, ...]:
    state = CardState(start.segments, recorded_settings(snapshot.settings))
    for event in snapshot.events[:at]:
        state.do(event)
    return state.state().segments


def _asked_at(snapshot: DeviceSnapshot, at: int) -> dict[int, int]:
    """When the blocks in use were asked for."""
    times: dict[int, int] = {}
    for event in snapshot.events[:at]:
        if event.action == "alloc":
            times[event.address] = event.time
        elif event.action == "free_completed":
            times.pop(event.address, None)
    return times


def _holes(segments: Iterable[DeviceSegment]) -> Iterator[int]:
    for segment in segments:
        at = segment.address
        for block in (*segment.blocks, None):
            end = segment.address + segment.size if block is None else block.address
            yield end - at
            at = end if block is None else block.address + block.size


def _parts(
    blocks: Iterable[DeviceBlock], name: Callable[[DeviceBlock], str]
) -> tuple[HeldPart, ...]:
    found: dict[str, HeldPart] = {}
    for block in blocks:
        at = name(block)
        part = found.get(at, HeldPart(name=at, bytes=0, blocks=0))
        found[at] = replace(part, bytes=part.bytes + block.size, blocks=part.blocks + 1)
    return tuple(sorted(found.values(), key=lambda part: (-part.bytes, part.name)))


def _stacks(blocks: Iterable[DeviceBlock]) -> tuple[HeldStack, ...]:
    known = [block for block in blocks if block.stack]
    stacks = {place_of_stack(block.stack): block.stack for block in reversed(known)}
    return tuple(
        HeldStack(name=p.name, bytes=p.bytes, blocks=p.blocks, stack=stacks[p.name])
        for p in _parts(known, lambda block: place_of_stack(block.stack))
    )


def _size_class(block: DeviceBlock) -> str:
    if block.size <= LARGEST_SMALL:
        return SMALL
    return MIDDLE if block.size < LEAST_OWN else LARGE


def _timeline(amounts: list[tuple[int, int]], at: int) -> Iterator[DeviceMoment]:
    """A few moments, each the largest of its stretch, the explained one among them."""
    step = -(-len(amounts) // _POINTS)
    for first in range(0, len(amounts), step):
        stretch = range(first, min(first + step, len(amounts)))
        most = at if at in stretch else max(stretch, key=lambda n: amounts[n][0])
        yield DeviceMoment(event=most, allocated=amounts[most][0], reserved=amounts[most][1])


def _others(
    snapshot: DeviceSnapshot, start: Start, ran_out: OutOfDeviceMemory | None, reserved: int
) -> Iterator[OtherSettings]:
    """The history under other settings; what the driver had is what it gave and had left."""
    if not snapshot.events:
        return
    as_is = recorded_settings(snapshot.settings)
    capacity = None if ran_out is None else reserved + ran_out.free
    tried = {"as it was": as_is}
    if not as_is.expandable_segments:
        tried["expandable_segments:True"] = replace(as_is, expandable_segments=True)
        for split in _SPLITS if as_is.splits_all else ():
            tried[f"max_split_size_mb:{split}"] = replace(as_is, max_split_size=split * MIB)
    for name, settings in tried.items():
        found = what_if(snapshot, settings, capacity, start)
        yield OtherSettings(settings=name, peak_reserved=found.peak_reserved, fits=found.fits)


def _notes(
    snapshot: DeviceSnapshot, start: Start, others: tuple[OtherSettings, ...]
) -> Iterator[str]:
    if not snapshot.events:
        yield (
            "no history was recorded, so that this is the moment of the snapshot: call "
            "torch.cuda.memory._record_memory_history() before the training"
        )
    if start.missed:
        yield (
            f"{start.missed:,} of {len(snapshot.events):,} events do not go with the others, as "
            "where a history has holes: what was before them is uncertain"
        )
    before = sum(block.size for _, block in start.live)
    if snapshot.events and before:
        yield (
            f"the history begins with {format_bytes(before)} in use: other settings are tried with "
            "these blocks asked for first, by address"
        )
    if others and others[0].fits:
        yield (
            "asked for in that order, everything would have had room as it was: what lay where "
            "before the history decided, so that other settings are no sure help"
        )
