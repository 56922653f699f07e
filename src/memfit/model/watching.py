"""One frame of a live view: processes, rows, the curve so far, and targets met or missed."""

from __future__ import annotations

from dataclasses import dataclass

from memfit.model.plan import Limit
from memfit.model.trace import Forecast, Reading


@dataclass(frozen=True, kw_only=True)
class Targets:
    """What a run should stay below; None where nobody asks."""

    process_bytes: int | None = None
    process_threads: int | None = None
    total_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Target:
    """One target, and the worst that was seen."""

    name: str
    wanted: str
    found: str
    met: bool


@dataclass(frozen=True, kw_only=True)
class Watched:
    """One process of a frame."""

    pid: int
    depth: int
    name: str
    bytes: int
    threads: int = 0  # where it is known


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What a live view shows at one moment; `notes` are what the run said, the last first.

    `rows_at` is when `rows` were read, in seconds. `holders` are as the run itself told them last.
    A run that was made to end, for its memory, is `cut_short`.
    """

    title: str
    bytes: int
    limit: Limit
    processes: tuple[Watched, ...]
    rows: tuple[tuple[str, int], ...]
    readings: tuple[Reading, ...]
    forecast: Forecast
    targets: tuple[Target, ...]
    ended: bool = False
    notes: tuple[str, ...] = ()
    rows_at: float | None = None
    holders: tuple[tuple[str, int], ...] = ()
    cut_short: bool = False

    @property
    def peak(self) -> Reading:
        """The highest reading so far."""
        return max(self.readings, key=lambda r: r.bytes, default=Reading(seconds=0, bytes=0))

    @property
    def held_bytes(self) -> int:
        """What is held now; of a run that has ended, what it held last."""
        return self.readings[-1].bytes if self.ended and self.readings else self.bytes

    @property
    def limit_share(self) -> float:
        """That as a share of the limit."""
        return self.held_bytes / self.limit.bytes

    @property
    def peak_share(self) -> float:
        """The peak as a share of the limit."""
        return self.peak.bytes / self.limit.bytes

    @property
    def part_bytes(self) -> dict[str, int]:
        """Rows by the first word of their names, of which there are few, and always the same."""
        found: dict[str, int] = {}
        for name, amount in self.rows:
            first = name.split(".", 1)[0]
            found[first] = found.get(first, 0) + amount
        return found

    @property
    def seconds_to_limit(self) -> float | None:
        """How long until the limit is reached; None where that is not foreseen, or behind."""
        return self._until(self.forecast.reaches_limit_at)

    @property
    def seconds_to_limit_at_least(self) -> float | None:
        """The same at the earliest."""
        return None if self.seconds_to_limit is None else self._until(self.forecast.low)

    @property
    def seconds_to_limit_at_most(self) -> float | None:
        """The same at the latest; None where it may never come."""
        return None if self.seconds_to_limit is None else self._until(self.forecast.high)

    def _until(self, at: float | None) -> float | None:
        if at is None or self.ended or not self.readings or self.bytes >= self.limit.bytes:
            return None
        return max(0.0, at - self.readings[-1].seconds)
