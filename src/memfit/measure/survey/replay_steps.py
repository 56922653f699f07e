"""A run's allocations as steps, and as the numbers that a replay takes.

A replay must ask malloc for nothing but the run's own blocks while it goes on, so all that it needs
is made before it begins.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from memfit.measure.survey.cycle import ALIGNED, Cycle, Numbers

# malloc is looked at only where it may be at a new height. Between two looks it can grow by this
# share of the most that is alive.
_UNSEEN = 0.01


@dataclass(frozen=True, slots=True)
class Alloc:
    """Ask for a block under a name."""

    name: object
    bytes: int


@dataclass(frozen=True, slots=True)
class Free:
    """Give a block back."""

    name: object


@dataclass(frozen=True, slots=True)
class Play:
    """Do the acts `part` of a cycle, whose blocks have one name together.

    `old` is the name of those that the time before has left.
    """

    cycle: Cycle
    name: object
    old: object
    part: slice


@dataclass(frozen=True, slots=True)
class FreeKept:
    """Give back what a cycle has kept that was played under a name."""

    cycle: Cycle
    name: object


@dataclass(frozen=True, slots=True)
class Moment:
    """From here on, growth counts for this moment of the run."""

    name: str


Step = Alloc | Free | Play | FreeKept | Moment


@dataclass(frozen=True, kw_only=True)
class Run:
    """All steps: what comes first, then two iterations in turn as often as needed, and the last."""

    first: tuple[Step, ...]
    odd: tuple[Step, ...] = ()
    even: tuple[Step, ...] = ()
    last: tuple[Step, ...] = ()
    iterations: int = 1


# Numbers of steps. In the tables of cycles LOOK stands beside the kinds of acts.
ALLOC, FREE_ONE, PLAY, FREE_KEPT, MOMENT = range(5)
LOOK = 9
Numbered = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class RunNumbers:
    """A run as numbers: tables of cycles one after the other, and steps that name their places."""

    tables: memoryview | bytes
    first: tuple[Numbered, ...]
    odd: tuple[Numbered, ...]
    even: tuple[Numbered, ...]
    last: tuple[Numbered, ...]
    iterations: int
    blocks: int
    moments: tuple[str, ...]

    @classmethod
    def of(cls, run: Run) -> RunNumbers:
        tables = _Tables(most=_most_alive((*run.first, *run.odd, *run.even)))
        parts = [
            tuple(map(tables.numbered, part)) for part in (run.first, run.odd, run.even, run.last)
        ]
        first, odd, even, last = parts
        return cls(
            tables=memoryview(tables.numbers),
            first=first,
            odd=odd,
            even=even,
            last=last,
            iterations=run.iterations,
            blocks=tables.blocks,
            moments=tuple(tables.moments),
        )


def _most_alive(steps: Iterable[Step]) -> int:
    """About the most bytes that are alive at once: what single steps hold, and one cycle."""
    held: dict[object, int] = {}
    most = 0
    for step in steps:
        if isinstance(step, Alloc):
            held[step.name] = step.bytes
        elif isinstance(step, Free):
            held.pop(step.name, None)
        elif isinstance(step, Play):
            most = max(most, sum(held.values()) + step.cycle.live_peak)
    return max(most, sum(held.values()))


@dataclass(kw_only=True)
class _Tables:
    most: int
    numbers: array[int] = field(default_factory=lambda: array("q"))
    blocks: int = 0
    moments: dict[str, int] = field(default_factory=dict)
    _places: dict[object, int] = field(default_factory=dict)
    _parts: dict[tuple[int, int, int], tuple[int, int]] = field(default_factory=dict)
    _lists: dict[tuple[int, ...], tuple[int, int]] = field(default_factory=dict)

    def numbered(self, step: Step) -> Numbered:
        match step:
            case Alloc(name=name, bytes=size):
                return (ALLOC, self._place(name, 1), size)
            case Free(name=name):
                return (FREE_ONE, self._place(name, 1))
            case Play(cycle=cycle, name=name, old=old, part=part):
                count = len(cycle.sizes)
                table = self._table(cycle, *part.indices(len(cycle.kinds))[:2])
                return (PLAY, *table, self._place(name, count), self._place(old, count))
            case FreeKept(cycle=cycle, name=name):
                return (FREE_KEPT, *self._list(cycle.kept), self._place(name, len(cycle.sizes)))
            case Moment(name=name):
                return (MOMENT, self.moments.setdefault(name, len(self.moments)))

    def _place(self, name: object, count: int) -> int:
        """Where the blocks of a name begin."""
        if name not in self._places:
            self._places[name] = self.blocks
            self.blocks += count
        return self._places[name]

    def _list(self, slots: tuple[int, ...]) -> tuple[int, int]:
        if slots not in self._lists:
            self._lists[slots] = (len(self.numbers), len(slots))
            self.numbers.extend(slots)
        return self._lists[slots]

    def _table(self, cycle: Cycle, start: int, stop: int) -> tuple[int, int]:
        """Where a part of a cycle begins in the numbers, and how many acts and looks it has."""
        key = (id(cycle), start, stop)
        if key not in self._parts:
            columns = self._with_looks(cycle, start, stop)
            self._parts[key] = (len(self.numbers), len(columns[0]))
            for column in columns:
                self.numbers.frombytes(column.astype(np.int64).tobytes())
        return self._parts[key]

    def _with_looks(self, cycle: Cycle, start: int, stop: int) -> list[Numbers]:
        kinds, slots = cycle.kinds[start:stop], cycle.slots[start:stop]
        sizes = cycle.sizes[slots]
        asked = np.where(kinds <= ALIGNED, sizes, 0).cumsum()
        looks = np.flatnonzero(np.diff(asked // max(1, int(_UNSEEN * self.most)), prepend=0)) + 1
        columns = ((kinds, LOOK), (slots, 0), (sizes, 0))
        return [np.insert(column, looks, value) for column, value in columns]
