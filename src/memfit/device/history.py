"""The state in which a recorded history begins: its end, undone event by event."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from dataclasses import dataclass, replace

from memfit.device.allocator_settings import (
    LARGEST_SMALL,
    SMALL_SEGMENT,
    AllocatorSettings,
    recorded_settings,
)
from memfit.device.blocks import Block
from memfit.model.device_snapshot import DeviceBlock, DeviceEvent, DeviceSegment, DeviceSnapshot
from memfit.units import TIB

_Line = tuple[str, bool, int]  # a pool, whether it is small, and a stream


@dataclass(frozen=True, kw_only=True)
class Start:
    """Segments with the blocks in use, as they were before the first event.

    `missed` counts events that do not go with the rest, as where a history has holes.
    """

    segments: tuple[DeviceSegment, ...]
    missed: int = 0

    @property
    def live(self) -> tuple[tuple[DeviceSegment, DeviceBlock], ...]:
        """The blocks in use, each with its segment, by address."""
        return tuple((s, b) for s in self.segments for b in s.blocks if b.busy)

    @property
    def reserved(self) -> int:
        return sum(segment.size for segment in self.segments)


def start_of(snapshot: DeviceSnapshot) -> Start:
    """Undo what was recorded."""
    undoing = CardState(snapshot.segments, recorded_settings(snapshot.settings))
    for event in reversed(snapshot.events):
        undoing.undo(event)
    return undoing.state()


class CardState:
    """Segments and blocks in use, as events are undone or done again."""

    def __init__(self, segments: Iterable[DeviceSegment], settings: AllocatorSettings) -> None:
        self.settings = settings
        self.segments = {s.address: s for s in segments}
        self.live = {b.address: b for s in self.segments.values() for b in s.blocks if b.busy}
        self.known = set(self.live)  # of these, the whole size is known
        self.order = sorted(self.live)
        self.missed = 0

    def undo(self, event: DeviceEvent) -> None:
        at = event.address
        if event.action == "alloc":
            self._unalloc(at)
        elif event.action == "free_completed":
            if at in self.live:
                self.missed += 1
            else:
                insort(self.order, at)
            self.live[at] = DeviceBlock(at, event.size, event.size, False, waits=True)
            self.known.discard(at)
        elif event.action == "free_requested":
            block = self.live.get(at)
            self.missed += block is None
            if block is not None:
                self.live[at] = replace(block, allocated=True, waits=False, stack=event.stack)
        elif event.action == "segment_alloc":
            self.missed += self.segments.pop(at, None) is None
        elif event.action == "segment_free":
            self._add(event)
        elif event.action == "segment_map":
            self._unmap(event)
        elif event.action == "segment_unmap":
            self._map(event)

    def do(self, event: DeviceEvent) -> None:
        """What an event changed."""
        at = event.address
        if event.action == "alloc":
            if at not in self.live:
                insort(self.order, at)
            self.live[at] = DeviceBlock(at, event.size, event.size, True, stack=event.stack)
            self.known.discard(at)
        elif event.action == "free_requested" and at in self.live:
            self.live[at] = replace(self.live[at], allocated=False, waits=True)
        elif event.action == "free_completed" and at in self.live:
            del self.live[at], self.order[bisect_left(self.order, at)]
            self.known.discard(at)
        elif event.action == "segment_alloc":
            self._add(event)
        elif event.action == "segment_free":
            self.segments.pop(at, None)
        elif event.action == "segment_map":
            self._map(event)
        elif event.action == "segment_unmap":
            self._unmap(event)

    def _add(self, event: DeviceEvent) -> None:
        small = event.size == SMALL_SEGMENT
        self.segments[event.address] = DeviceSegment(
            event.address, event.size, event.stream, small, (), pool=event.pool
        )

    def _unalloc(self, at: int) -> None:
        """A request got the beginning of what was free: there the block before it ended."""
        if self.live.pop(at, None) is None:
            self.missed += 1
            return
        self.known.discard(at)
        place = bisect_left(self.order, at)
        del self.order[place]
        before = self.live[self.order[place - 1]] if place else None
        if before is None or before.address in self.known or at in self.segments:
            return
        room, small = at - before.address, before.size <= LARGEST_SMALL
        if not self._splits(before, room, small=small):
            self.known.add(before.address)
            self.live[before.address] = replace(before, size=room)

    def _unmap(self, event: DeviceEvent) -> None:
        """Take a stretch out of the mapped ones."""
        begin, end = event.address, event.address + event.size
        found = [
            s
            for s in self.segments.values()
            if s.expandable and s.address < end and begin < s.address + s.size
        ]
        self.missed += not found
        for segment in found:
            del self.segments[segment.address]
            last = segment.address + segment.size
            for low, high in ((segment.address, begin), (end, last)):
                if low < high:
                    self.segments[low] = replace(segment, address=low, size=high - low)

    def _map(self, event: DeviceEvent) -> None:
        """Put a stretch to the mapped ones, as one with those beside it."""
        begin, end = event.address, event.address + event.size
        small = event.size % SMALL_SEGMENT == 0 and event.size % (10 * SMALL_SEGMENT) != 0
        for segment in [s for s in self.segments.values() if s.expandable]:
            last = segment.address + segment.size
            if last == begin or segment.address == end:
                begin, end = min(begin, segment.address), max(end, last)
                small = segment.small
                del self.segments[segment.address]
        self.segments[begin] = DeviceSegment(
            begin, end - begin, event.stream, small, (), expandable=True, pool=event.pool
        )

    def _splits(self, block: DeviceBlock, room: int, *, small: bool) -> bool:
        """Whether what is behind a request in so much room would have been split off."""
        size = self.settings.rounded(block.size)
        return room < size or self.settings.splits(size, room - size, small=small)

    def state(self) -> Start:
        """The segments with what is in use in them."""
        addresses = sorted(self.segments)
        inside: dict[int, list[DeviceBlock]] = {address: [] for address in addresses}
        for at in sorted(self.live):
            place = bisect_right(addresses, at) - 1
            segment = self.segments[addresses[place]] if place >= 0 else None
            if segment is None or at >= segment.address + segment.size:
                self.missed += 1
            else:
                inside[segment.address].append(self.live[at])
        segments = []
        for address in addresses:
            segment = self.segments[address]
            blocks = tuple(self._sized(segment, inside[address]))
            segments.append(replace(segment, blocks=blocks))
        return Start(segments=tuple(segments), missed=self.missed)

    def _sized(self, segment: DeviceSegment, blocks: list[DeviceBlock]) -> Iterable[DeviceBlock]:
        """Blocks with their whole sizes: what was too little to be split off belongs to them."""
        end = segment.address + segment.size
        for place, block in enumerate(blocks):
            next_at = blocks[place + 1].address if place + 1 < len(blocks) else end
            room = next_at - block.address
            size = block.size
            if block.address not in self.known:
                size = self.settings.rounded(size)
                if not self._splits(block, room, small=segment.small or segment.expandable):
                    size = room
            if 0 < size <= room:
                yield replace(block, size=size)
            else:
                self.missed += 1


def blocks_of(segments: Iterable[DeviceSegment]) -> list[list[Block]]:
    """Segments as rows of the allocator's own blocks, with what is free between those in use.

    Expandable stretches of one pool and stream are one segment, unmapped where nothing is.
    """
    rows, grown = [], dict[_Line, list[DeviceSegment]]()
    for segment in segments:
        if segment.expandable:
            grown.setdefault((segment.pool, segment.small, segment.stream), []).append(segment)
        else:
            rows.append(_row(segment))
    for number, line in enumerate(grown.values(), start=1):
        row: list[Block] = []
        for segment in sorted(line, key=lambda s: s.address):
            _unmapped(row, segment.address, row[-1] if row else None, number)
            row += _row(segment, number)
        last = row[-1]
        _unmapped(row, last.address + last.size + TIB, last, number)
        rows.append(row)
    return rows


def _row(segment: DeviceSegment, number: int = 0) -> list[Block]:
    pool = (segment.pool, segment.small)
    row, at = [], segment.address

    def free(until: int) -> None:
        if at < until:
            row.append(Block(at, until - at, segment.stream, pool, number))

    for found in segment.blocks:
        if not found.busy:
            continue
        free(found.address)
        block = Block(found.address, found.size, segment.stream, pool, number)
        block.allocated, block.waits, block.requested = (
            found.allocated,
            found.waits,
            found.requested,
        )
        row.append(block)
        at = found.address + found.size
    free(segment.address + segment.size)
    return row


def _unmapped(row: list[Block], until: int, last: Block | None, number: int) -> None:
    if last is None or last.address + last.size >= until:
        return
    at = last.address + last.size
    row.append(Block(at, until - at, last.stream, last.pool, number, mapped=False))
