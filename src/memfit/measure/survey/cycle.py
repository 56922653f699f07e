"""Work that repeats, as the allocations and releases of one time: recorded twice, told once.

A script's local variables keep a step's tensors alive until the next step replaces them. So each
piece of work is recorded twice, and the second time shows where the first one's leavings go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from memfit.measure.survey.recorded_allocations import WORK_DONE, AllocationEvent, Sequences
from memfit.model.training import FORWARD_DONE

Numbers = NDArray[np.int64]
# What an act does: asks for a block as numpy does or as torch does, gives one back, or gives back
# the one that the time before left in its place.
PLAIN, ALIGNED, FREE, FREE_OLD = range(4)


@dataclass(frozen=True, kw_only=True, eq=False)
class Cycle:
    """One time of the work: what each act does and to which block, and the bytes of each block.

    `left` are the blocks alive at its end, `kept` those of them that are never released. Before the
    act number `forward` the first forward pass is done.
    """

    kinds: Numbers
    slots: Numbers
    sizes: Numbers
    left: tuple[int, ...]
    kept: tuple[int, ...]
    forward: int | None = None

    @classmethod
    def of(cls, events: Sequence[AllocationEvent]) -> Cycle:
        """The second of two recorded pieces of work, each of which ends with a mark."""
        return _told(events)[0]

    def scaled(self, times: int, over: int) -> Cycle:
        """The same with larger blocks."""
        return self if times == over else replace(self, sizes=self.sizes * times // over)

    @property
    def kept_bytes(self) -> int:
        return int(self.sizes[list(self.kept)].sum())

    @property
    def live_peak(self) -> int:
        """The most bytes that it has alive at once, without what it keeps for good."""
        loose = list(set(self.left) - set(self.kept))
        live = int(self.sizes[loose].sum())
        asked = np.where(self.kinds <= ALIGNED, 1, -1) * self.sizes[self.slots]
        return live + max(0, int(asked.cumsum().max(initial=0)))


class GrowingCycle:
    """A cycle whose blocks grow with the batch, each on its own straight line."""

    def __init__(self, sequences: Sequences) -> None:
        self.batch = sequences.large_batch
        self.matched_share = sequences.matched_share
        self._own, blocks = _told(sequences.large)
        self._span = max(1, sequences.large_batch - sequences.small_batch)
        grown = sequences.grown if sequences.large_batch > sequences.small_batch else {}
        self._more = np.array([grown.get(block, 0) for block in blocks], np.int64)

    def at(self, batch: int) -> Cycle:
        """The cycle at another batch."""
        sizes = self._own.sizes + self._more * (batch - self.batch) // self._span
        return replace(self._own, sizes=np.maximum(1, sizes))


def _told(events: Sequence[AllocationEvent]) -> tuple[Cycle, list[int]]:
    """The cycle, and for each of its blocks the number that it has in the recording."""
    first, second = _halves(events)
    before, after = _left(first), _left(second)
    successor = _match(before, after)
    slots: dict[int, int] = {}
    sizes: list[int] = []
    kinds: list[int] = []
    acted: list[int] = []
    forward: int | None = None
    for block, free, size, marker, _, aligned in second:
        if marker:
            forward = len(kinds) if forward is None and marker == FORWARD_DONE else forward
        elif not free:
            acted.append(slots.setdefault(block, len(slots)))
            kinds.append(ALIGNED if aligned else PLAIN)
            sizes.append(size)
        elif block in slots:
            acted.append(slots[block])
            kinds.append(FREE)
        elif block in successor:
            acted.append(successor[block])  # a block, whose slot may be yet to come
            kinds.append(FREE_OLD)
    acts, done = np.array(acted, np.int64), np.array(kinds, np.int64)
    old = done == FREE_OLD
    acts[old] = [slots[block] for block in acts[old].tolist()]
    left = [slots[block] for block in after]
    released = set(acts[old].tolist())
    cycle = Cycle(
        kinds=done,
        slots=acts,
        sizes=np.array(sizes, np.int64),
        left=tuple(left),
        kept=tuple(slot for slot in left if slot not in released),
        forward=forward,
    )
    return cycle, list(slots)


def _halves(
    events: Sequence[AllocationEvent],
) -> tuple[list[AllocationEvent], list[AllocationEvent]]:
    """What lies before the first mark and between it and the last; marks are no memory."""
    marks = {e.block for e in events if e.marker}
    ends = [i for i, e in enumerate(events) if e.marker == WORK_DONE]
    kept = [
        (i, e)
        for i, e in enumerate(events)
        if e.block not in marks or (not e.free and e.marker != WORK_DONE)
    ]
    middle, end = ends[0], ends[-1]
    first = [e for i, e in kept if i < middle]
    second = [e for i, e in kept if middle < i < end]
    return first, second


def _left(events: Iterable[AllocationEvent]) -> dict[int, AllocationEvent]:
    """The blocks that are alive at the end, in the order in which they were made."""
    alive: dict[int, AllocationEvent] = {}
    for event in events:
        if event.free:
            alive.pop(event.block, None)
        elif not event.marker:
            alive[event.block] = event
    return alive


def _match(before: dict[int, AllocationEvent], after: dict[int, AllocationEvent]) -> dict[int, int]:
    """For each block that the first left, the one that the second left in its stead."""
    by_kind: defaultdict[object, list[int]] = defaultdict(list)
    for block, event in reversed(after.items()):
        by_kind[event.where, event.bytes].append(block)
    found: dict[int, int] = {}
    for block, event in before.items():
        if peers := by_kind[event.where, event.bytes]:
            found[block] = peers.pop()
    return found
