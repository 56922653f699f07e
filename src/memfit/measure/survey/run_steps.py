"""The allocations and releases of a whole run of rollouts and updates, in their order.

A script's local variables keep a step's tensors alive until the next step replaces them. So each
piece of work is recorded twice, and the second time shows where the first one's leavings go;
repeated, it is the run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from memfit.measure.survey.malloc_replay import Alloc, Free, IterationEnd, Moment, Step
from memfit.measure.survey.recorded_allocations import WORK_DONE, AllocationEvent
from memfit.model.phase import phase_of
from memfit.model.training import FORWARD_DONE, HeldArray, Sizes

# More steps of a rollout, or blocks of an array, than this are replayed as fewer, larger ones.
MOST_STEPS = 128
ALWAYS_MAPPED = 32 * 2**20  # glibc gives blocks of this size a mapping of their own, ever


@dataclass(frozen=True)
class Act:
    """One thing a cycle does: allocate a block, release one, or note what it is about.

    `old` says that the released block is the one that the cycle before left under that name.
    """

    block: int
    bytes: int = 0
    free: bool = False
    old: bool = False
    note: str = ""
    aligned: bool = False


@dataclass(frozen=True, kw_only=True)
class Cycle:
    """Work that repeats; `left` are the blocks alive at its end, `kept` those never released."""

    acts: Sequence[Act]
    left: tuple[int, ...]
    kept: tuple[int, ...]
    kept_bytes: int

    @classmethod
    def of(cls, events: Sequence[AllocationEvent]) -> Cycle:
        """The second of two recorded pieces of work, each of which ends with a mark."""
        first, second = _halves(events)
        before = _left(first)
        after = _left(second)
        successor = _match(before, after)
        acts: list[Act] = []
        released: set[int] = set()
        for event in second:
            if event.marker:
                acts.append(Act(event.block, note=event.marker))
            elif not event.free:
                acts.append(Act(event.block, bytes=event.bytes, aligned=event.aligned))
            elif event.block in successor:
                released.add(successor[event.block])
                acts.append(Act(successor[event.block], free=True, old=True))
            elif event.block >= 0 and event.block not in before:
                acts.append(Act(event.block, free=True))
        kept = [block for block in after if block not in released]
        return cls(
            acts=tuple(acts),
            left=tuple(after),
            kept=tuple(kept),
            kept_bytes=sum(after[block].bytes for block in kept),
        )


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


def live_peak(cycle: Cycle) -> int:
    """The most bytes that repeating work has alive at once, without what it keeps for good."""
    sizes = {act.block: act.bytes for act in cycle.acts if not act.free and not act.note}
    loose = set(cycle.left) - set(cycle.kept)
    live = peak = sum(sizes[block] for block in loose)
    for act in cycle.acts:
        if act.free:
            live -= sizes[act.block]
        elif not act.note:
            live += act.bytes
            peak = max(peak, live)
    return peak


def run_steps(
    *, sizes: Sizes, update: Cycle, rollout: Cycle | None, iterations: int
) -> Iterator[Step]:
    """The whole run, up to so many iterations."""
    run = _Run(sizes.arrays, update)
    yield from run.replace_first()
    yield Moment("rollout" if sizes.collects else sizes.moment)
    yield from run.renew("build", 0)
    for iteration in range(iterations):
        if sizes.collects:
            yield Moment("rollout")
        yield from run.renew("rollout", iteration)
        if rollout is not None:
            yield from run.collect(rollout, sizes.telling_steps, iteration)
        yield from run.copy(iteration)
        yield Moment(sizes.moment)
        yield from run.renew("update", iteration)
        yield from run.learn(iteration, iteration - 1 if sizes.keeps_last_graph else None)
        if not sizes.keeps_last_graph:
            yield from run.drop_graph(iteration)
        yield IterationEnd()
    if sizes.collects:
        yield Moment("rollout")


class _Run:
    """Remembers, while a run is replayed, which blocks are alive under which name."""

    def __init__(self, arrays: Sequence[HeldArray], update: Cycle) -> None:
        self.arrays = arrays
        self.update = update
        self.held: dict[str, list[object]] = {}
        self.graphs: dict[int, list[object]] = {}
        self.left: dict[int, object] = {}
        self.acted: dict[int, object] = {}

    def renew(self, phase: str, iteration: int) -> Iterator[Step]:
        """Every array whose life begins in this phase: a new one comes, the old one goes.

        A large new one is zeroed by the kernel and costs nothing yet while the old one is there;
        what an update makes is written before the old one goes.
        """
        for array in self.arrays:
            if phase_of(array.phases[0]) != phase:
                continue
            old = self.held.pop(array.name, [])
            large = array.bytes // array.pieces >= ALWAYS_MAPPED and phase != "update"
            if large:
                yield from map(Free, old)
            yield from self._allocate(array, iteration, "rows")
            if not large:
                yield from map(Free, old)

    def replace_first(self) -> Iterator[Step]:
        """What a rollout is stored in is built before it, and made anew for the first.

        From this release malloc learns to take such blocks from its heap.
        """
        for array in self.arrays:
            if phase_of(array.phases[0]) == "rollout":
                yield Alloc(("first", array.name), array.bytes // array.pieces)
                yield Free(("first", array.name))

    def copy(self, iteration: int) -> Iterator[Step]:
        """Arrays that are copied as a whole, one after the other."""
        for array in self.arrays:
            if array.copied_in:
                yield Moment(array.copied_in)
                old = self.held.pop(array.name)
                yield from self._allocate(array, iteration, "copy")
                yield from map(Free, old)

    def _allocate(self, array: HeldArray, iteration: int, what: str) -> Iterator[Step]:
        pieces = min(array.pieces, MOST_STEPS)
        names: list[object] = [(what, array.name, iteration, piece) for piece in range(pieces)]
        self.held[array.name] = names
        for name in names:
            yield Alloc(name, array.bytes // pieces)

    def collect(self, rollout: Cycle, steps: int, iteration: int) -> Iterator[Step]:
        """Steps of the rollout; what each keeps stays with the iteration's graph."""
        times = max(1, min(steps, MOST_STEPS))
        larger = (steps, times) if rollout.kept else (1, 1)
        graph = self.graphs[iteration] = []
        for step in range(times):
            yield from self._repeat(rollout, ("rollout", iteration, step), self.acted, larger)
            graph.extend(self.acted.pop(block) for block in rollout.kept)

    def learn(self, iteration: int, last: int | None) -> Iterator[Step]:
        """One update; the last iteration's graph goes when the new forward is done."""
        yield from self._repeat(self.update, ("update", iteration), self.left, (1, 1), last)

    def drop_graph(self, iteration: int) -> Iterator[Step]:
        for name in self.graphs.pop(iteration, []):
            yield Free(name)

    def _repeat(
        self,
        cycle: Cycle,
        name: tuple[object, ...],
        left: dict[int, object],
        larger: tuple[int, int],
        last_graph: int | None = None,
    ) -> Iterator[Step]:
        """A cycle under a name of its own; `left` is what the last one left, and then this one."""
        now: dict[int, object] = {}
        times, over = larger
        for act in cycle.acts:
            if act.note == FORWARD_DONE:
                if last_graph is not None:
                    yield from self.drop_graph(last_graph)
            elif not act.free:
                now[act.block] = (*name, act.block)
                yield Alloc(now[act.block], act.bytes * times // over, aligned=act.aligned)
            elif act.old:
                if act.block in left:
                    yield Free(left.pop(act.block))
            else:
                yield Free(now.pop(act.block))
        for old in left.values():  # what this cycle did not release in its own place
            yield Free(old)
        left.clear()
        left.update(now)
