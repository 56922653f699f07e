"""A step of training that repeats: its allocations, and what it leaves for the next to release.

A script's local variables keep a step's tensors alive until the next step replaces them. Two steps
are recorded, so that the second shows where the first one's leavings go; repeated, it is the run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from memfit.measure.survey.malloc_replay import Alloc, Free, Moment, Step
from memfit.measure.survey.recorded_allocations import AllocationEvent

ITERATIONS = 6
# More steps than this are replayed as fewer, larger ones.
MOST_STEPS = 128
MOST_MINIBATCHES = 3


@dataclass(frozen=True, kw_only=True)
class Array:
    """An array of the run: its bytes, of how many blocks it is made, and when it is alive."""

    name: str
    bytes: int
    pieces: int
    phases: tuple[str, ...]


@dataclass(frozen=True)
class Act:
    """One thing a cycle does: allocate a block, release one, or come to the end of its forward.

    `old` says that the released block is the one that the cycle before left under that name.
    """

    block: int
    bytes: int = 0
    free: bool = False
    old: bool = False
    forward_done: bool = False


@dataclass(frozen=True, kw_only=True)
class Cycle:
    """A repeating step; `left` are the blocks alive at its end, `kept` those never released."""

    acts: Sequence[Act]
    left: tuple[int, ...]
    kept: tuple[int, ...]
    kept_bytes: int

    @classmethod
    def of(cls, events: Sequence[AllocationEvent]) -> Cycle:
        """The second of two recorded steps, each of which ends with a mark."""
        first, second = _halves(events)
        before = _left(first)
        after = _left(second)
        successor = _match(before, after)
        acts: list[Act] = []
        released: set[int] = set()
        for event in second:
            if event.marker:
                acts.append(Act(event.block, forward_done=True))
            elif not event.free:
                acts.append(Act(event.block, bytes=event.bytes))
            elif event.block not in before:
                acts.append(Act(event.block, free=True))
            elif event.block in successor:
                released.add(successor[event.block])
                acts.append(Act(successor[event.block], free=True, old=True))
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
    ends = [i for i, e in enumerate(events) if e.marker == "gather"]
    kept = [
        (i, e)
        for i, e in enumerate(events)
        if e.block not in marks or (e.marker == "gathered" and not e.free)
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
    """For each block that the first step left, the one that the second left in its stead."""
    by_kind: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for block, event in reversed(after.items()):
        by_kind[event.operator, event.bytes].append(block)
    found: dict[int, int] = {}
    for block, event in before.items():
        if peers := by_kind[event.operator, event.bytes]:
            found[block] = peers.pop()
    return found


def live_peak(cycle: Cycle) -> int:
    """The most bytes that a repeating step has alive at once, without what it keeps for good."""
    sizes = {act.block: act.bytes for act in cycle.acts if not act.free and not act.forward_done}
    loose = set(cycle.left) - set(cycle.kept)
    live = peak = sum(sizes[block] for block in loose)
    for act in cycle.acts:
        if act.free:
            live -= sizes[act.block]
        elif not act.forward_done:
            live += act.bytes
            peak = max(peak, live)
    return peak


def run_steps(
    *,
    update: Cycle,
    minibatches: int,
    rollout: Cycle | None,
    steps: int,
    arrays: Sequence[Array],
    keeps_last_graph: bool,
) -> Iterator[Step]:
    """What a run of rollouts and updates asks of malloc, in its order."""
    run = _Run(arrays, update)
    collects = rollout is not None or any("rollout" in a.phases for a in arrays)
    yield Moment("rollout" if collects else "update")
    yield from run.allocate("build", 0)
    for iteration in range(ITERATIONS):
        if collects:
            yield Moment("rollout")
        yield from run.release("rollout")
        yield from run.allocate("rollout", iteration)
        if rollout is not None:
            yield from run.collect(rollout, steps, iteration)
        yield Moment("update")
        yield from run.replace("update", iteration)
        for number in range(min(minibatches, MOST_MINIBATCHES)):
            last = keeps_last_graph and number == 0
            yield from run.learn((iteration, number), iteration - 1 if last else None)
        if not keeps_last_graph:
            yield from run.drop_graph(iteration)


class _Run:
    """Remembers, while a run is replayed, which blocks are alive under which name."""

    def __init__(self, arrays: Sequence[Array], update: Cycle) -> None:
        self.arrays = arrays
        self.update = update
        self.held: dict[str, list[object]] = {"build": [], "rollout": [], "update": []}
        self.graphs: dict[int, list[object]] = {}
        self.left: dict[int, object] = {}
        self.acted: dict[int, object] = {}

    def allocate(self, phase: str, iteration: int) -> Iterator[Step]:
        """Every array whose life begins in this phase."""
        for array in self.arrays:
            if array.phases[0] != phase:
                continue
            pieces = min(array.pieces, MOST_STEPS)
            for piece in range(pieces):
                name = ("array", array.name, iteration, piece)
                self.held[phase].append(name)
                yield Alloc(name, array.bytes // pieces)

    def release(self, phase: str) -> Iterator[Step]:
        for name in self.held[phase]:
            yield Free(name)
        self.held[phase] = []

    def replace(self, phase: str, iteration: int) -> Iterator[Step]:
        """New arrays first, then the old ones go: what an assignment does."""
        old, self.held[phase] = self.held[phase], []
        yield from self.allocate(phase, iteration)
        for name in old:
            yield Free(name)

    def collect(self, rollout: Cycle, steps: int, iteration: int) -> Iterator[Step]:
        """Steps of the rollout; what each keeps stays with the iteration's graph."""
        times = max(1, min(steps, MOST_STEPS))
        larger = (steps, times) if rollout.kept else (1, 1)
        graph = self.graphs[iteration] = []
        for step in range(times):
            yield from _repeat(rollout, ("rollout", iteration, step), self.acted, larger=larger)
            graph.extend(self.acted.pop(block) for block in rollout.kept)

    def learn(self, number: tuple[int, int], last: int | None) -> Iterator[Step]:
        """One step of the update; the last iteration's graph goes when the new forward is done."""
        after = () if last is None else self.drop_graph(last)
        yield from _repeat(self.update, ("update", *number), self.left, forward_done=after)

    def drop_graph(self, iteration: int) -> Iterator[Step]:
        for name in self.graphs.pop(iteration, []):
            yield Free(name)


def _repeat(
    cycle: Cycle,
    name: tuple[object, ...],
    left: dict[int, object],
    *,
    larger: tuple[int, int] = (1, 1),
    forward_done: Iterable[Step] = (),
) -> Iterator[Step]:
    """A cycle under a name of its own; `left` is what the last one left, and then this one."""
    now: dict[int, object] = {}
    times, over = larger
    for act in cycle.acts:
        if act.forward_done:
            yield from forward_done
        elif not act.free:
            now[act.block] = (*name, act.block)
            yield Alloc(now[act.block], act.bytes * times // over, aligned=True)
        elif act.old:
            if act.block in left:
                yield Free(left.pop(act.block))
        else:
            yield Free(now.pop(act.block))
    for old in left.values():  # what this cycle did not release in its own place
        yield Free(old)
    left.clear()
    left.update(now)
