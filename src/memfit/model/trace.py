"""A trace: readings of a process tree over time, and what happened meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from memfit.model.ledger import Ledger
from memfit.model.notebook import ShownInNotebooks
from memfit.model.plan import Limit

T = TypeVar("T")
P = TypeVar("P", bound=Sequence[Any])  # a time, and what was read then


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The tree at one moment.

    `filling` is what its large reserved blocks were filled with since they were first seen, `room`
    what they can still take; `files` is what its processes have of files, shared parts each time.
    """

    seconds: float
    bytes: int
    processes: int = 1
    threads: int = 1
    step: int | None = None
    filling: int = 0
    room: int = 0
    files: int = 0


@dataclass(frozen=True, kw_only=True)
class Member:
    """One process of a tree over time; of its readings only `seconds` and `bytes` are known."""

    pid: int
    name: str
    readings: tuple[Reading, ...]


class EventKind(StrEnum):
    """What can happen to a recorded run."""

    START = "start"
    PHASE = "phase"
    PEAK = "peak"
    WARNING = "warning"
    TERMINATED = "terminated"
    GROWTH = "growth"
    KILLED = "killed"
    OUT_OF_MEMORY = "out of memory"
    END = "end"


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened, in a sentence."""

    seconds: float
    kind: EventKind
    text: str
    bytes: int = 0


class Growth(StrEnum):
    """How a run's memory goes on.

    What grows at one pace is `GROWING` until that has lasted: a cache begins like a leak.
    """

    STABLE = "stable"
    FILLING = "filling"
    GROWING = "growing"
    LEAKING = "leaking"
    UNKNOWN = "unknown"

    @property
    def at_one_pace(self) -> bool:
        return self in (Growth.GROWING, Growth.LEAKING)


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """How it goes on, and when the limit is reached; times are seconds from the run's start.

    `low` and `high` bound the time in 90 of 100 cases; `high` is None where it may never come.
    What grows has done so from `since` on, by `grown_bytes`, less and less where it is `slowing`;
    `members` are the processes in which, where that is known.
    """

    growth: Growth
    bytes_per_second: float
    ends_at_bytes: int | None = None
    reaches_limit_at: float | None = None
    low: float | None = None
    high: float | None = None
    step: int | None = None
    since: float | None = None
    grown_bytes: int = 0
    members: tuple[str, ...] = ()
    slowing: bool = False

    @property
    def condition(self) -> str:
        """Under what the limit is reached at that time, where there is one."""
        return " if it goes on so" if self.growth is Growth.GROWING else ""


@dataclass(frozen=True, kw_only=True)
class RowsAt:
    """The rows of a run as they were read at one time."""

    seconds: float
    ledger: Ledger


@dataclass(frozen=True, kw_only=True)
class Trace(ShownInNotebooks):
    """A recorded run."""

    command: tuple[str, ...]
    pid: int
    started: float
    limit: Limit | None
    readings: tuple[Reading, ...]
    events: tuple[Event, ...]
    peak_ledger: Ledger | None = None
    rows_at: float | None = None  # when the rows of `peak_ledger` were read, in seconds
    rows_over_time: tuple[RowsAt, ...] = ()
    exit_code: int | None = None  # None where its end is not recorded
    holders: Mapping[str, int] = field(default_factory=dict)  # as the run itself told last
    members: tuple[Member, ...] = ()
    cores: int | None = None  # that it could use
    cut: str = ""  # why its recording ended before it did

    @property
    def peak(self) -> Reading | None:
        return max(self.readings, key=lambda r: r.bytes, default=None)

    @property
    def unread_bytes(self) -> int:
        """What the peak has above its rows, which were read at another time."""
        if self.peak is None or self.peak_ledger is None:
            return 0
        return max(0, self.peak.bytes - sum(self.peak_ledger.row_bytes.values()))

    @property
    def unattributed_bytes(self) -> int:
        """What of the peak no row explains, or came after its rows were read."""
        rows = 0 if self.peak_ledger is None else self.peak_ledger.unattributed()
        return self.unread_bytes + rows

    @property
    def limit_share(self) -> float | None:
        """The peak as a share of the limit; None where there is no limit or no reading."""
        if self.limit is None or self.peak is None:
            return None
        return self.peak.bytes / self.limit.bytes

    def phase_at(self, seconds: float) -> str:
        """The phase that the run itself told last before a time; empty where it told none."""
        phases = [e for e in self.events if e.kind is EventKind.PHASE and e.seconds <= seconds]
        return phases[-1].text if phases else ""

    @property
    def seconds(self) -> float:
        return self.readings[-1].seconds if self.readings else 0.0


def at_fewer_times(curves: Sequence[Sequence[P]], most: int) -> list[list[P]]:
    """Several curves at most at so many times, the same for all, so that they can be stacked."""
    times = sorted({point[0] for curve in curves for point in curve})
    step = max(1, -(-len(times) // most))
    kept = set(times[::step])
    return [[point for point in curve if point[0] in kept] for curve in curves]


def fewer_points(points: Sequence[T], most: int, amount: Callable[[T], float]) -> list[T]:
    """At most so many points of a curve, in order: the lowest and the highest of each stretch."""
    if len(points) <= most:
        return list(points)
    stretches = max(1, (most - 1) // 2)
    step = -(-len(points) // stretches)
    kept = {len(points) - 1}
    for start in range(0, len(points), step):
        stretch = range(start, min(start + step, len(points)))
        kept |= {find(stretch, key=lambda i: amount(points[i])) for find in (min, max)}
    return [points[i] for i in sorted(kept)]
