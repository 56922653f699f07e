"""The ledger: every component of a run's memory, and the peak that follows from it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TypeVar

from memfit.model.evidence import Evidence
from memfit.model.phase import AFTER, PHASES, phase_of
from memfit.model.size import Knobs, Size, compile_sizes, const, total

K = TypeVar("K")


class Kind(StrEnum):
    """What a component is in a training run."""

    ENV_STATE = "env state"
    BUFFER = "buffer"
    PARAMETERS = "parameters"
    GRADIENTS = "gradients"
    OPTIMIZER = "optimizer"
    ACTIVATIONS = "activations"
    SCRATCH = "scratch"
    COPIES = "copies"
    BASE = "base"
    WORKER = "worker"
    STACKS = "stacks"
    FRAGMENTATION = "fragmentation"
    ARRAYS = "arrays"
    OBJECTS = "objects"
    HEAP = "heap"
    LARGE = "large block"
    FILE = "mapped file"
    UNATTRIBUTED = "unattributed"


class Place(StrEnum):
    """Where a component lives."""

    MAIN = "main process"
    WORKERS = "workers"
    SHARED = "shared memory"
    DEVICE = "device"


@dataclass(frozen=True, kw_only=True)
class Component:
    """One row: what it is, where it lives, when it is alive, how large, and what says so.

    `reserved` is given where address space is held that is not (yet) resident.
    """

    name: str
    kind: Kind
    size: Size
    phases: tuple[str, ...]
    evidence: Evidence
    place: Place = Place.MAIN
    reserved: Size | None = None

    def alive_in(self, moment: str) -> bool:
        return moment in self.phases or phase_of(moment) in self.phases


@dataclass(frozen=True, kw_only=True)
class Peak:
    """The largest moment of a run."""

    moment: str
    bytes: int

    @property
    def phase(self) -> str:
        return phase_of(self.moment)


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """Components under one set of knob values.

    `length` is the knob that says after how many environment steps the run ends, `first_update`
    after how many of them updates begin.
    """

    components: tuple[Component, ...]
    knobs: Mapping[str, int] = field(default_factory=dict)
    length: str = ""
    first_update: Size = field(default_factory=lambda: const(0))

    @cached_property
    def moments(self) -> tuple[str, ...]:
        """The moments to compare: a phase's dotted parts where it has some, else the phase."""
        named = {m for c in self.components for m in c.phases}
        split = {phase_of(m) for m in named if "." in m}
        plain = {m for m in named if "." in m or m not in split}
        return tuple(sorted(plain, key=lambda m: (PHASES.index(phase_of(m)), m)))

    @cached_property
    def moment_sizes(self) -> dict[str, Size]:
        """The symbolic total of each moment."""
        return {m: total(c.size for c in self.components if c.alive_in(m)) for m in self.moments}

    @cached_property
    def evaluator(self) -> Callable[[Knobs], dict[str, int]]:
        """From knob values to the bytes of every moment: the fast path for what-if."""
        return compile_sizes(self.moment_sizes)

    @cached_property
    def row_evaluator(self) -> Callable[[Knobs], dict[str, int]]:
        """The same for rows, by their places: names need not differ."""
        return compile_sizes({str(i): c.size for i, c in enumerate(self.components)})

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The bytes of all rows, in their order."""
        return tuple(self.row_evaluator(self.knobs).values())

    def one_more(self, component: Component, knob: str) -> int:
        """What one more of a knob would add to a row."""
        more = {**self.knobs, knob: self.knobs[knob] + 1}
        return component.size.evaluate(more) - self.bytes_of(component)

    def at(self, **knobs: int) -> Ledger:
        """The same run with some knobs changed."""
        changed = replace(self, knobs={**self.knobs, **knobs})
        # None of these depends on the knobs' values, so that they are worked out once.
        changed.__dict__.update(
            moments=self.moments,
            moment_sizes=self.moment_sizes,
            evaluator=self.evaluator,
            row_evaluator=self.row_evaluator,
        )
        return changed

    def after(self, steps: int) -> dict[str, int]:
        """The moments that a run has come to after so many environment steps, with their bytes.

        Buffers have been filled so far. Updates begin when there is enough to learn from;
        evaluating and saving are taken to begin then too, and what comes after training when all
        steps are done.
        """
        first = self.first_update.evaluate(self.knobs)
        then = self.at(**{self.length: steps}).moment_bytes if self.length else self.moment_bytes
        early, last = ("start", "build", "rollout"), self.knobs.get(self.length, 0)
        return {
            m: n
            for m, n in then.items()
            if (steps >= first and (m != AFTER or steps >= last)) or phase_of(m) in early
        }

    def first_over(self, limit: int) -> int:
        """The environment step after which more than this is needed; beyond the last if none."""
        steps = range(self.knobs.get(self.length, 0) + 1)
        return bisect_right(steps, limit, key=lambda n: max(self.after(n).values(), default=0))

    def with_rows(self, components: Iterable[Component]) -> Ledger:
        """The same run with other rows."""
        return replace(self, components=tuple(components))

    def bytes_of(self, component: Component) -> int:
        return component.size.evaluate(self.knobs)

    def bytes_by(self, key: Callable[[Component], K]) -> dict[K, int]:
        """Rows taken together by their kind, name or the like, the largest first."""
        found: dict[K, int] = {}
        for component in self.components:
            at = key(component)
            found[at] = found.get(at, 0) + self.bytes_of(component)
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def unattributed(self, moment: str = "") -> int:
        """What no row explains, at a moment; of all rows without one."""
        return sum(
            self.bytes_of(c)
            for c in self.components
            if c.kind is Kind.UNATTRIBUTED and (not moment or c.alive_in(moment))
        )

    @property
    def row_bytes(self) -> dict[str, int]:
        """The bytes of each row, the largest first."""
        return self.bytes_by(lambda component: component.name)

    @property
    def moment_bytes(self) -> dict[str, int]:
        return self.evaluator(self.knobs)

    @property
    def phase_bytes(self) -> dict[str, int]:
        """Each phase's peak: the largest of its moments."""
        phases: dict[str, int] = {}
        for moment, amount in self.moment_bytes.items():
            phase = phase_of(moment)
            phases[phase] = max(phases.get(phase, 0), amount)
        return phases

    @property
    def peak(self) -> Peak:
        """The largest moment; never the sum of everything."""
        moments = self.moment_bytes
        if not moments:
            return Peak(moment="start", bytes=0)
        moment = max(moments, key=lambda m: moments[m])
        return Peak(moment=moment, bytes=moments[moment])
