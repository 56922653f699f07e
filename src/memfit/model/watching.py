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
    """What a live view shows at one moment."""

    title: str
    bytes: int
    limit: Limit
    processes: tuple[Watched, ...]
    rows: tuple[tuple[str, int], ...]
    readings: tuple[Reading, ...]
    forecast: Forecast
    targets: tuple[Target, ...]
    ended: bool = False
