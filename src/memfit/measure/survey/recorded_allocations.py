"""Recorded sequences of allocations, stated at other sizes than they were recorded at.

memray records every call of malloc, the small objects of C++ and of numpy among them, whose real
lifetimes decide which freed blocks can be joined again. Recorded at two small sizes, each
allocation's bytes are a straight line in the batch, and the whole sequence can be stated at full
size without running it.
"""

from __future__ import annotations

import gc
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memfit.errors import Unsupported
from memfit.model.training import FORWARD_DONE

if TYPE_CHECKING:
    from memray import AllocationRecord

# Allocations of these odd sizes are notes in the sequence, not memory: they say what lies between
# the run's own allocations, and where a piece of work ends.
WORK_DONE = "work done"
_MARKERS = {1_000_007: FORWARD_DONE, 1_000_009: WORK_DONE}
_MARKER_BYTES = {word: size for size, word in _MARKERS.items()}
_FRAMES = 4  # of the calling Python code: enough to tell one line of a run's own work from another
_AHEAD, _ALIKE = 12, 4  # how far two recordings may drift apart, and how many then agree again
_MOST_LOST = (
    200  # times that they do not, after which one line's allocations are told apart no more
)
EARLIER = -1  # the block of a release whose allocation came before the recording
# Small objects that live for a few events only are mostly taken from and given back to the same few
# places. In long recordings of a rollout's step those with the shortest lives are left out.
_SMALL_BYTES = 1024
_SHORT_LIVES = (4, 16, 64, 256, 1024)

Where = tuple[tuple[str, str, int], ...]


class AllocationEvent(NamedTuple):
    """One allocation (`free` false) or its release; `block` ties the two together.

    What an earlier step left and this one releases has the block EARLIER. `where` is the Python
    code that asked for it; torch asks for `aligned` ones.
    """

    block: int
    free: bool
    bytes: int
    marker: str = ""
    where: Where = ()
    aligned: bool = False


def mark(word: str) -> None:
    """Put a note into the sequence that is being recorded; words of no use there are left out."""
    import torch

    if word in _MARKER_BYTES:
        torch.empty(_MARKER_BYTES[word], dtype=torch.uint8)


def record_twice(work: Callable[[], object], most: int | None = None) -> list[AllocationEvent]:
    """Do a piece of work twice, after a first time unseen, and return what both allocate, in order.

    The first time at some size builds what is kept for that size. What the work returns is held
    until both are done, as a run holds what it keeps. Of the first of the two only what it leaves
    is of interest.
    """

    def both() -> None:
        held = []
        for _ in range(2):
            held.append(work())
            mark(WORK_DONE)

    work()
    events = record(both)
    middle = next(i for i, event in enumerate(events) if event.marker == WORK_DONE)
    gone = {event.block for event in events[:middle] if event.free}
    left = [event for event in events[:middle] if event.block not in gone]
    events = left + events[middle:]
    return events if most is None else thinned(events, most)


def record(step: Callable[[], object]) -> list[AllocationEvent]:
    """Run a step once and return its allocations in order."""
    try:
        from memray import FileDestination, FileFormat, FileReader, Tracker
    except ImportError as error:
        raise Unsupported(
            "memray, which records allocations, is not installed: pip install 'memfit[torch]'"
        ) from error
    with tempfile.TemporaryDirectory(prefix="memfit-recorded-") as folder:
        path = Path(folder, "allocations")
        to = FileDestination(path, overwrite=True, compress_on_exit=False)
        with Tracker(destination=to, file_format=FileFormat.ALL_ALLOCATIONS):
            step()
        with FileReader(path) as reader, no_garbage():
            events = _events(reader.get_allocation_records())
    return events


def thinned(events: list[AllocationEvent], most: int) -> list[AllocationEvent]:
    """The events without small objects of short lives, as far as there are too many."""
    for longest in _SHORT_LIVES:
        if len(events) <= most:
            break
        made: dict[int, int] = {}
        short: set[int] = set()
        for i, event in enumerate(events):
            if not event.free:
                made[event.block] = i
            elif event.bytes <= _SMALL_BYTES and i - made.get(event.block, i) in range(1, longest):
                short.add(event.block)
        events = [event for event in events if event.block not in short]
    return events


@contextmanager
def no_garbage() -> Iterator[None]:
    """While objects are made by the hundred thousand: a search for garbage would take longer."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _events(records: Iterable[AllocationRecord]) -> list[AllocationEvent]:
    """What malloc was asked for; mappings that go around it are left out."""
    from memray import AllocatorType as Asked

    plain = {int(one) for one in (Asked.MALLOC, Asked.CALLOC, Asked.REALLOC)}
    aligned = {int(one) for one in (Asked.POSIX_MEMALIGN, Asked.ALIGNED_ALLOC, Asked.MEMALIGN)}
    free = int(Asked.FREE)
    places: dict[int, Where] = {}
    live: dict[int, tuple[int, int]] = {}
    events: list[AllocationEvent] = []
    for one in records:
        kind = one.allocator
        if kind == free:
            block, size = live.pop(one.address, (EARLIER, 0))
            events.append(AllocationEvent(block, True, size))
        elif kind in plain or kind in aligned:
            block, size, stack = len(events), one.size, one.stack_id
            if stack not in places:
                places[stack] = tuple(one.stack_trace(_FRAMES))
            live[one.address] = block, size
            marker = _MARKERS.get(size, "")
            events.append(
                AllocationEvent(block, False, size, marker, places[stack], kind in aligned)
            )
    return events


@dataclass(frozen=True, kw_only=True)
class Sequences:
    """One step's allocations, recorded at two batch sizes."""

    small: list[AllocationEvent]
    large: list[AllocationEvent]
    small_batch: int
    large_batch: int

    @cached_property
    def grown(self) -> dict[int, int]:
        """By how much each block of the larger recording is larger than in the smaller one.

        Kernels may work differently at the two sizes; a block that only one of them asks for is
        not in it, and taken as it is.
        """
        batches = max(1, self.small_batch), self.large_batch
        return {b.block: b.bytes - a.bytes for a, b in _matched(self.small, self.large, batches)}

    @property
    def matched_share(self) -> float:
        """The share of the larger recording's bytes whose growth is known."""
        asked = _allocations(self.large)
        total = sum(e.bytes for e in asked)
        known = sum(e.bytes for e in asked if e.block in self.grown)
        return known / total if total else 1.0


def _allocations(events: Iterable[AllocationEvent]) -> list[AllocationEvent]:
    return [event for event in events if not event.free]


Pairs = Iterator[tuple[AllocationEvent, AllocationEvent]]


def _matched(
    small: Iterable[AllocationEvent], large: Iterable[AllocationEvent], batches: tuple[int, int]
) -> Pairs:
    """Pair two recordings of the same work, of so many samples each."""
    theirs = _by_code(small)
    for code, blocks in _by_code(large).items():
        yield from _in_step(theirs[code], blocks, batches)


def _by_code(
    events: Iterable[AllocationEvent],
) -> defaultdict[tuple[Where, bool], list[AllocationEvent]]:
    """Allocations by the code that asked for them: how often it does may differ, in its order."""
    found: defaultdict[tuple[Where, bool], list[AllocationEvent]] = defaultdict(list)
    for event in _allocations(events):
        found[event.where, event.aligned].append(event)
    return found


def _in_step(
    small: Sequence[AllocationEvent], large: Sequence[AllocationEvent], batches: tuple[int, int]
) -> Pairs:
    """Pair allocations in their order, stepping over those that only one of the two has."""
    few, many = batches

    def alike(i: int, j: int, length: int) -> bool:
        """Whether they grow, and at most with the samples: in whole numbers, since most just do."""
        pairs = zip(small[i : i + length], large[j : j + length], strict=False)
        return all(a.bytes <= b.bytes and b.bytes * few <= a.bytes * many for a, b in pairs)

    skips = sorted(product(range(_AHEAD), repeat=2), key=sum)[1:]
    i = j = lost = 0
    while i < len(small) and j < len(large):
        if alike(i, j, 1):
            yield small[i], large[j]
            i, j = i + 1, j + 1
        elif lost > _MOST_LOST:
            i, j = i + 1, j + 1
        else:
            found = (skip for skip in skips if alike(i + skip[0], j + skip[1], _ALIKE))
            ahead = next(found, None)
            lost += ahead is None
            skip, step = ahead or (1, 1)
            i, j = i + skip, j + step
