"""Recorded sequences of tensor allocations, stated at other sizes than they were recorded at.

torch's own profiler reports every allocation of its CPU allocator, the scratch and reordered
copies of its kernels included. Recorded at two small sizes, each allocation's bytes are a straight
line in the batch, and the whole sequence can be stated at full size without running it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from memfit.model.training import FORWARD_DONE, GATHER, GATHERED
from memfit.torch_allocations import TorchAllocation, torch_allocations

# Allocations of these odd sizes are notes in the sequence, not memory: they say where, between
# torch's own allocations, the library's numpy copies come and go, and where a piece of work ends.
WORK_DONE = "work done"
_MARKERS = {1_000_003: GATHER, 1_000_005: GATHERED, 1_000_007: FORWARD_DONE, 1_000_009: WORK_DONE}
_MARKER_BYTES = {word: size for size, word in _MARKERS.items()}
_AHEAD = 12  # how far two recordings may drift apart before they are taken as they come
EARLIER = -1  # the block of a release whose allocation came before the recording


@dataclass(frozen=True)
class AllocationEvent:
    """One allocation (`free` false) or its release; `block` ties the two together.

    What an earlier step left and this one releases has the block EARLIER.
    """

    block: int
    free: bool
    bytes: int
    marker: str = ""
    operator: str = ""


def mark(word: str) -> None:
    """Put a note into the sequence that is being recorded; words of no use there are left out."""
    import torch

    if word in _MARKER_BYTES:
        torch.empty(_MARKER_BYTES[word], dtype=torch.uint8)


def record_twice(work: Callable[[], object]) -> list[AllocationEvent]:
    """Do a piece of work twice and return the allocations of both, in order.

    What it returns is held until both are done, as a run holds what it keeps.
    """

    def both() -> None:
        held = []
        for _ in range(2):
            held.append(work())
            mark(WORK_DONE)

    return record(both)


def record(step: Callable[[], object]) -> list[AllocationEvent]:
    """Run a step once and return its allocations in order."""
    return _pair(torch_allocations(step))


def _pair(raw: Sequence[TorchAllocation]) -> list[AllocationEvent]:
    live: dict[int, int] = {}
    events: list[AllocationEvent] = []
    count = 0
    for _, pointer, size, operator in raw:
        if size > 0:
            live[pointer] = count
            events.append(AllocationEvent(count, False, size, _MARKERS.get(size, ""), operator))
            count += 1
        else:
            events.append(AllocationEvent(live.pop(pointer, EARLIER), True, -size))
    return events


@dataclass(frozen=True, kw_only=True)
class Sequences:
    """One step's allocations, recorded at two batch sizes."""

    small: list[AllocationEvent]
    large: list[AllocationEvent]
    small_batch: int
    large_batch: int

    @cached_property
    def per_unit(self) -> dict[int, tuple[int, int]]:
        """For each block of the larger recording: its growth, over so many units of batch.

        Kernels may work differently at the two sizes; a block that only one of them asks for is
        taken as it is.
        """
        span = self.large_batch - self.small_batch
        return {
            b.block: (b.bytes - a.bytes, span)
            for a, b in _matched(_allocations(self.small), _allocations(self.large))
        }

    @property
    def matched_share(self) -> float:
        """The share of the larger recording's bytes whose growth is known."""
        asked = _allocations(self.large)
        total = sum(e.bytes for e in asked)
        known = sum(e.bytes for e in asked if e.block in self.per_unit)
        return known / total if total else 1.0

    def at(self, batch: int) -> list[AllocationEvent]:
        """The sequence for another batch size, each block on its own straight line."""
        more = batch - self.large_batch
        if not more or self.large_batch == self.small_batch:
            return self.large
        events = []
        for event in self.large:
            grown, span = (0, 1) if event.marker else self.per_unit.get(event.block, (0, 1))
            size = max(1, event.bytes + grown * more // span)
            events.append(replace(event, bytes=size))
        return events


def _allocations(events: Sequence[AllocationEvent]) -> list[AllocationEvent]:
    return [event for event in events if not event.free]


def _matched(
    small: list[AllocationEvent], large: list[AllocationEvent]
) -> Iterator[tuple[AllocationEvent, AllocationEvent]]:
    """Pair two recordings of the same work, stepping over what only one of them has."""
    i = j = 0
    while i < len(small) and j < len(large):
        if _same(small, i, large, j, 1):
            yield small[i], large[j]
            i, j = i + 1, j + 1
            continue
        skips = ((s, total - s) for total in range(1, _AHEAD) for s in range(total + 1))
        same = ((s, t) for s, t in skips if _same(small, i + s, large, j + t, 4))
        skip, step = next(same, (1, 1))
        i, j = i + skip, j + step


def _same(
    small: list[AllocationEvent], i: int, large: list[AllocationEvent], j: int, length: int
) -> bool:
    a, b = small[i : i + length], large[j : j + length]
    return bool(a) and [(e.operator, e.marker) for e in a] == [(e.operator, e.marker) for e in b]
