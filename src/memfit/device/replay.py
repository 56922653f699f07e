"""A recorded history given to the allocator again: as it was, and with other settings."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from memfit.device.allocator_settings import LARGEST_SMALL, AllocatorSettings, recorded_settings
from memfit.device.blocks import Block
from memfit.device.caching_allocator import CachingAllocator, Decision, OutOfMemory, Usage
from memfit.device.history import Start, blocks_of, start_of
from memfit.model.device_snapshot import DeviceEvent, DeviceSnapshot

_OF_DRIVER = ("segment_alloc", "segment_free", "segment_map", "segment_unmap")


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """How the allocator's own decisions compare with those that were recorded."""

    blocks: int  # requests
    same_address: int  # requests that got the block they really got
    segments: int  # times that the driver was asked, or given something back
    same_segments: int  # those decided at the same moment, of the same size
    others: int  # decisions that the real allocator did not take
    usage: Usage
    recorded_peak: int  # of what was reserved
    missed: int


def replay(snapshot: DeviceSnapshot, settings: AllocatorSettings | None = None) -> Replayed:
    """Give the allocator what the real one got, and compare what both do."""
    start = start_of(snapshot)
    beside = _Beside(start, settings or recorded_settings(snapshot.settings))
    for event in snapshot.events:
        beside.see(event)
    beside.finish()
    return beside.result(start)


@dataclass
class _Beside:
    """The allocator beside the real one.

    Two things are no decisions of an allocator, and taken from the record: the address at which the
    driver puts a segment, and whether the driver refuses, which shows in what was given back.
    """

    start: Start
    settings: AllocatorSettings
    waiting: list[DeviceEvent] = field(default_factory=list)
    at: dict[int, Block] = field(default_factory=dict)  # real address to block
    blocks: int = 0
    same_address: int = 0
    segments: int = 0
    same: int = 0
    others: int = 0

    def __post_init__(self) -> None:
        self.allocator = CachingAllocator(
            self.settings, place=self._place, refuses=lambda size: self._refusing()
        )
        for row in blocks_of(self.start.segments):
            self.allocator.adopt(row)
        self.at = {block.address: block for block in self.allocator.live}
        self.addresses: deque[DeviceEvent] = deque()
        self.refuse_until = 0
        self.reserved = self.peak = self.start.reserved

    def see(self, event: DeviceEvent) -> None:
        if event.action in _OF_DRIVER:
            self.waiting.append(event)
            sign = 1 if event.action in ("segment_alloc", "segment_map") else -1
            self.reserved += sign * event.size
            self.peak = max(self.peak, self.reserved)
        elif event.action == "alloc":
            self._alloc(event)
        elif event.action in ("free_requested", "free_completed"):
            self._settle()
            block = self.at.get(event.address)
            if block is None:
                return
            if event.action == "free_requested" and block.allocated:
                self.allocator.free(block, waits=True)
            elif event.action == "free_completed" and block.waits:
                self.allocator.complete(block)
                del self.at[event.address]

    def finish(self) -> None:
        self._settle()

    def result(self, start: Start) -> Replayed:
        return Replayed(
            blocks=self.blocks,
            same_address=self.same_address,
            segments=self.segments,
            same_segments=self.same,
            others=self.others,
            usage=self.allocator.usage,
            recorded_peak=self.peak,
            missed=start.missed,
        )

    def _alloc(self, event: DeviceEvent) -> None:
        asked = [e for e in self.waiting if e.action in ("segment_alloc", "segment_map")]
        given = [e for e in self.waiting if e.action in ("segment_free", "segment_unmap")]
        rounded = self.settings.rounded(event.size)
        key = (event.pool, rounded <= LARGEST_SMALL)
        if given and (not asked or self.allocator.cached(rounded, event.stream, key)):
            self._settle()
            given = []
        self.addresses = deque(asked)
        self.refuse_until = sum(e.size for e in given)
        self.before = len(self.allocator.decisions)
        try:
            block = self.allocator.malloc(event.size, event.stream, event.pool)
        except OutOfMemory:  # the real one did not run out
            self.refuse_until = 0
            block = self.allocator.malloc(event.size, event.stream, event.pool)
        self.refuse_until = 0
        self._compare(self.allocator.decisions[self.before :])
        self.blocks += 1
        self.same_address += block.address == event.address
        self.at[event.address] = block

    def _settle(self) -> None:
        """What was given back for no request was given back by `empty_cache`."""
        if not self.waiting:
            return
        before = len(self.allocator.decisions)
        if any(e.action in ("segment_free", "segment_unmap") for e in self.waiting):
            self.allocator.empty_cache()
        self._compare(self.allocator.decisions[before:], only="segment_free segment_unmap")

    def _compare(self, decisions: list[Decision], only: str = "") -> None:
        seen = [e for e in self.waiting if not only or e.action in only]
        real = [Decision(e.action, e.address, e.size) for e in seen]
        left = [d for d in decisions if d.action in _OF_DRIVER]
        for decision in real:
            if decision in left:
                left.remove(decision)
                self.same += 1
        self.segments += len(real)
        self.others += len(left)
        self.waiting = [e for e in self.waiting if e not in seen]

    def _place(self, size: int) -> int | None:
        """Where the real driver put the segment, if it was asked for one of this size now."""
        for event in self.addresses:
            if event.size == size or event.action == "segment_map":
                self.addresses.remove(event)
                return event.address
        return None

    def _refusing(self) -> bool:
        """The driver refused until so much had been given back."""
        given = sum(
            d.size
            for d in self.allocator.decisions[self.before :]
            if d.action in ("segment_free", "segment_unmap")
        )
        return given < self.refuse_until


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """The same requests under other settings, from an empty card on."""

    peak_reserved: int
    peak_allocated: int
    fits: bool | None  # within the room that the driver had; None where that is not known


def what_if(
    snapshot: DeviceSnapshot,
    settings: AllocatorSettings,
    capacity: int | None = None,
    start: Start | None = None,
) -> WhatIf:
    """What would have been reserved; blocks of before the history are asked for first, by address.

    Up to an out-of-memory error, whose request counts.
    """
    allocator = CachingAllocator(settings, capacity=capacity)
    at: dict[int, Block] = {}
    fits = None if capacity is None else True
    try:
        for segment, found in (start or start_of(snapshot)).live:
            block = allocator.malloc(found.requested or found.size, segment.stream, segment.pool)
            at[found.address] = block
        for event in snapshot.events:
            if event.action in ("alloc", "oom"):
                block = allocator.malloc(event.size, event.stream, event.pool)
                if event.action == "oom":
                    break
                at[event.address] = block
            elif event.action == "free_requested" and event.address in at:
                if at[event.address].allocated:
                    allocator.free(at[event.address], waits=True)
            elif event.action == "free_completed" and event.address in at:
                block = at.pop(event.address)
                if block.allocated:
                    allocator.free(block)
                elif block.waits:
                    allocator.complete(block)
    except OutOfMemory:
        fits = False
    usage = allocator.usage
    return WhatIf(peak_reserved=usage.peak_reserved, peak_allocated=usage.peak_allocated, fits=fits)
