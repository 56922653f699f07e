"""The allocations and releases of a whole run of rollouts and updates, in their order."""

from __future__ import annotations

from collections.abc import Iterator

from memfit.measure.survey.cycle import Cycle
from memfit.measure.survey.replay_steps import (
    Alloc,
    Free,
    FreeKept,
    Moment,
    Play,
    Run,
    Step,
)
from memfit.model.phase import phase_of
from memfit.model.training import HeldArray, Sizes

# More steps of a rollout, or blocks of an array, than this are replayed as fewer, larger ones.
MOST_STEPS = 128
ALWAYS_MAPPED = 32 * 2**20  # glibc gives blocks of this size a mapping of their own, ever


def run_steps(
    *,
    sizes: Sizes,
    update: Cycle,
    rollout: Cycle | None,
    iterations: int,
    rest: Cycle | None = None,
) -> Run:
    """The whole run, up to so many iterations; `rest` is the update with fewer samples.

    Of everything at most two generations are alive at once, so that names are taken in turn.
    """
    run = _Run(sizes, update, rest, rollout)
    return Run(
        first=(*run.begin(), *run.iteration(0)),
        odd=tuple(run.iteration(1)),
        even=tuple(run.iteration(0)),
        last=(Moment("rollout"),) if sizes.collects else (),
        iterations=iterations,
    )


class _Run:
    """Remembers, while a run is told, which arrays are alive under which name.

    `turn` is 0 and 1 for one iteration and the next.
    """

    def __init__(
        self, sizes: Sizes, update: Cycle, rest: Cycle | None, rollout: Cycle | None
    ) -> None:
        self.sizes = sizes
        self.arrays = sizes.arrays
        self.update = update
        self.rest = rest
        self.steps = max(1, min(sizes.telling_steps, MOST_STEPS))
        if rollout is not None and rollout.kept:
            rollout = rollout.scaled(sizes.telling_steps, self.steps)
        self.rollout = rollout
        self.held: dict[str, list[object]] = {}
        self.acted: object = "nothing"  # the name of the rollout's last step

    def begin(self) -> Iterator[Step]:
        """What comes before the first iteration."""
        yield from self.replace_first()
        yield Moment("rollout" if self.sizes.collects else self.sizes.moment)
        yield from self.renew("build", 0)

    def iteration(self, turn: int) -> Iterator[Step]:
        sizes = self.sizes
        if sizes.collects:
            yield Moment("rollout")
        yield from self.renew("rollout", turn)
        if self.rollout is not None:
            yield from self.collect(self.rollout, turn)
        yield from self.copy(turn)
        yield Moment(sizes.moment)
        yield from self.renew("update", turn)
        yield from self.learn(turn)
        if not sizes.keeps_last_graph:
            yield from self.drop_graph(turn)

    def renew(self, phase: str, turn: int) -> Iterator[Step]:
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
            yield from self._allocate(array, turn, "rows")
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

    def copy(self, turn: int) -> Iterator[Step]:
        """Arrays that are copied as a whole, one after the other."""
        for array in self.arrays:
            if array.copied_in:
                yield Moment(array.copied_in)
                old = self.held.pop(array.name)
                yield from self._allocate(array, turn, "copy")
                yield from map(Free, old)

    def _allocate(self, array: HeldArray, turn: int, what: str) -> Iterator[Step]:
        pieces = min(array.pieces, MOST_STEPS)
        names: list[object] = [(what, array.name, turn, piece) for piece in range(pieces)]
        self.held[array.name] = names
        for name in names:
            yield Alloc(name, array.bytes // pieces)

    def collect(self, rollout: Cycle, turn: int) -> Iterator[Step]:
        """Steps of the rollout; what each keeps stays with the iteration's graph."""
        for step in range(self.steps):
            name = ("rollout", turn, step)
            yield Play(rollout, name, self.acted, slice(None))
            self.acted = name

    def learn(self, turn: int) -> Iterator[Step]:
        """One update; a last iteration's graph that is kept goes when the new forward is done."""
        before = 1 - turn
        turn = 0 if self.rest else turn
        name, old = ("update", turn), ("update", 1 - turn)
        done = self.update.forward if self.sizes.keeps_last_graph else None
        yield Play(self.update, name, old, slice(None, done))
        if self.sizes.keeps_last_graph:
            yield from self.drop_graph(before)
        if done is not None:
            yield Play(self.update, name, old, slice(done, None))
        yield FreeKept(self.update, old)  # what this one did not release in its own place
        if self.rest is not None:
            yield Play(self.rest, old, name, slice(None))
            yield FreeKept(self.update, name)

    def drop_graph(self, turn: int) -> Iterator[Step]:
        if self.rollout is not None:
            for step in range(self.steps):
                yield FreeKept(self.rollout, ("rollout", turn, step))
