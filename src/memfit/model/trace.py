"""A trace: readings of a process tree over time, and what happened meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from memfit.model.ledger import Ledger
from memfit.model.plan import Limit


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
    """How a run's memory goes on."""

    STABLE = "stable"
    FILLING = "filling"
    LEAKING = "leaking"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """How it goes on, and when the limit is reached; times are seconds from the run's start.

    `low` and `high` bound the time in 90 of 100 cases; `high` is None where it may never come.
    What grows has done so from `since` on, by `grown_bytes`; `members` are the processes in which,
    where that is known.
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


@dataclass(frozen=True, kw_only=True)
class Trace:
    """A recorded run."""

    command: tuple[str, ...]
    pid: int
    started: float
    limit: Limit | None
    readings: tuple[Reading, ...]
    events: tuple[Event, ...]
    peak_ledger: Ledger | None = None
    rows_at: float | None = None  # when the rows of `peak_ledger` were read, in seconds
    exit_code: int | None = None  # None where its end is not recorded
    holders: Mapping[str, int] = field(default_factory=dict)  # as the run itself told last
    members: tuple[Member, ...] = ()
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
