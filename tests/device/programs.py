"""Small programs on a card: what they ask of the allocator, recorded as torch records it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from memfit.device.blocks import Block
from memfit.device.caching_allocator import CachingAllocator, OutOfMemory
from memfit.model.device_snapshot import (
    DeviceBlock,
    DeviceEvent,
    DeviceSegment,
    DeviceSnapshot,
)


@dataclass
class Program:
    """A program that keeps what it got in order, and whose history begins when `record` is set."""

    allocator: CachingAllocator
    record: bool = True
    events: list[DeviceEvent] = field(default_factory=list)
    kept: list[Block] = field(default_factory=list)
    waiting: list[Block] = field(default_factory=list)
    ran_out: bool = False

    def ask(self, size: int, stream: int = 0) -> Block | None:
        """Ask for so much; nothing where there is no room."""
        before = len(self.allocator.decisions)
        try:
            block = self.allocator.malloc(size, stream)
        except OutOfMemory:
            self._driver(before)
            self._note("oom", 0, size, stream)
            self.ran_out = True
            return None
        self._driver(before)
        self._note("alloc", block.address, size, stream)
        self.kept.append(block)
        return block

    def drop(self, which: int, *, waits: bool = False) -> None:
        """Free one of those that are kept."""
        if not self.kept:
            return
        block = self.kept.pop(which % len(self.kept))
        address, size = block.address, block.requested
        self._note("free_requested", address, size, block.stream)
        self.allocator.free(block, waits=True)
        self.waiting.append(block)
        if not waits:
            self.done(-1)

    def done(self, which: int) -> None:
        """The other streams are done with one that was freed."""
        if self.waiting:
            block = self.waiting.pop(which % len(self.waiting))
            self._note("free_completed", block.address, block.requested, block.stream)
            self.allocator.complete(block)

    def empty(self) -> None:
        """torch.cuda.empty_cache()"""
        before = len(self.allocator.decisions)
        self.allocator.empty_cache()
        self._driver(before)

    def snapshot(self, settings: dict[str, object] | None = None) -> DeviceSnapshot:
        """What torch would write now."""
        rows = [list(head.row()) for head in self.allocator.heads.values()]
        segments = [s for row in rows for s in _segments(row)]
        segments.sort(key=lambda s: s.address)
        return DeviceSnapshot(
            device=0, segments=tuple(segments), events=tuple(self.events), settings=settings or {}
        )

    def _driver(self, before: int) -> None:
        self.waiting = [block for block in self.waiting if block.waits]
        for decision in self.allocator.decisions[before:]:
            self._note(decision.action, decision.address, decision.size, decision.stream)

    def _note(self, action: str, address: int, size: int, stream: int) -> None:
        if self.record:
            self.events.append(DeviceEvent(action, address, size, stream))


def _segments(row: list[Block]) -> Iterable[DeviceSegment]:
    """A segment; of an expandable one, each stretch that is mapped."""
    stretch: list[Block] = []
    for block in [*row, None]:
        if block is not None and block.mapped:
            stretch.append(block)
        elif stretch:
            first = stretch[0]
            yield DeviceSegment(
                first.address,
                sum(b.size for b in stretch),
                first.stream,
                first.small,
                tuple(
                    DeviceBlock(b.address, b.size, b.requested, b.allocated, b.waits)
                    for b in stretch
                ),
                expandable=first.segment > 0,
            )
            stretch = []
