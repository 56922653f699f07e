"""What the updates of a stable-baselines3 run ask of malloc, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from memfit.measure.survey.malloc_replay import Alloc, Free, Moment, Step
from memfit.measure.survey.recorded_allocations import EARLIER, AllocationEvent


def padded_share(episode_starts: Any, batch: int) -> float:
    """The largest padded minibatch of a recurrent rollout, as a multiple of the batch size.

    A minibatch is a stretch of the envs' steps one after the other, cut where an episode or an
    env begins, and every piece is padded to the longest.
    """
    rows, envs = episode_starts.shape
    begins = [bool(episode_starts[t, e]) or t == 0 for e in range(envs) for t in range(rows)]
    largest = 1.0
    for first in range(0, len(begins), max(1, batch // 7)):  # the split is drawn anew each time
        piece = begins[first : first + batch]
        marks = [0, *(i for i, begin in enumerate(piece) if begin and i), len(piece)]
        lengths = [b - a for a, b in pairwise(marks)]
        largest = max(largest, len(lengths) * max(lengths) / len(piece))
    return largest


def update_cycles(
    *,
    events: Sequence[AllocationEvent],
    gather: int,
    arrays: Sequence[tuple[str, int]] | None,
    rollout: int,
    flattened: bool,
    iterations: int,
) -> Iterator[Step]:
    """What a run asks of malloc; `arrays` is None where it has a replay buffer."""
    if arrays is None:
        return off_policy_steps(events, gather, iterations)
    return on_policy_steps(arrays, events, gather, rollout, flattened, iterations)


def on_policy_steps(
    arrays: Sequence[tuple[str, int]],
    events: Sequence[AllocationEvent],
    gather: int,
    rollout: int,
    flattened: bool,
    iterations: int,
) -> Iterator[Step]:
    """What a run of collect, flatten and minibatches asks of malloc, in its order."""
    held: dict[str, object] = {}
    updates = Updates(events, gather)
    for iteration in range(iterations):
        yield Moment("rollout")
        for name, size in arrays:
            # The new array is there before the old one goes, but zeroed pages cost nothing yet.
            if name in held:
                yield Free(held[name])
            yield Alloc(("rows", name, iteration), size)
            held[name] = ("rows", name, iteration)
        if flattened:
            yield Moment("update.flatten")
            for name, size in arrays:
                yield Alloc(("flat", name, iteration), size)
                yield Free(held[name])
                held[name] = ("flat", name, iteration)
        yield Moment("update.minibatch")
        yield Alloc(("indices", iteration), 8 * rollout)
        yield from updates.steps(iteration)
        yield Free(("indices", iteration))


def off_policy_steps(
    events: Sequence[AllocationEvent], gather: int, iterations: int
) -> Iterator[Step]:
    """Gradient steps on sampled minibatches; the replay buffer is there already."""
    updates = Updates(events, gather)
    for iteration in range(iterations):
        yield Moment("rollout")
        yield Moment("update.minibatch")
        yield from updates.steps(iteration)
    yield Moment("rollout")


class Updates:
    """One recorded update after the other; each releases what the one before left, where it did."""

    def __init__(self, events: Sequence[AllocationEvent], gather: int) -> None:
        self.events = events
        self.gather = gather
        self.left: dict[int, list[object]] = {}  # by size: gradients, above all

    def steps(self, iteration: int) -> Iterator[Step]:
        live: dict[int, int] = {}
        gathering = 0
        for event in self.events:
            if event.marker == "gather":
                gathering += 1
                yield Alloc(("gather", iteration, gathering), self.gather)
            elif event.marker == "gathered":
                yield Free(("gather", iteration, gathering))
            if event.block == EARLIER:
                if same := self.left.get(event.bytes):
                    yield Free(same.pop(0))
            elif event.free:
                del live[event.block]
                yield Free((iteration, event.block))
            else:
                live[event.block] = event.bytes
                yield Alloc((iteration, event.block), event.bytes, aligned=True)
        yield from (Free(name) for same in self.left.values() for name in same)
        self.left = {}
        for block, size in live.items():
            self.left.setdefault(size, []).append((iteration, block))
