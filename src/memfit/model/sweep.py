"""A sweep: measured peaks over the values of one setting, and the line through them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from memfit.model.confinement import Confinement
from memfit.model.notebook import ShownInNotebooks

_DOUBLING = (
    2  # times the largest measured value: a line that is straight so far seldom goes further
)


class Outcome(StrEnum):
    """How the run at one value ended."""

    DONE = "done"
    OUT_OF_MEMORY = "out of memory"
    FAILED = "failed"
    TIMED_OUT = "timed out"


@dataclass(frozen=True, kw_only=True)
class Point:
    """One value of the setting: what the run's tree held at the most, as if alone on the machine.

    `outside_bytes` of that are other processes' part of library pages that they share with it.
    """

    value: int
    peak_bytes: int
    outcome: Outcome
    seconds: float
    exit_code: int | None = None
    said: str = ""
    planned_bytes: int | None = None
    outside_bytes: int = 0
    confinement: Confinement | None = None
    notes: tuple[str, ...] = ()

    @property
    def bytes_each(self) -> int:
        return self.peak_bytes // self.value

    @property
    def plan_error(self) -> float | None:
        """By what share the plan is above the measured peak; None where one of them is missing."""
        if self.planned_bytes is None or self.outcome is not Outcome.DONE:
            return None
        return self.planned_bytes / max(1, self.peak_bytes) - 1


@dataclass(frozen=True, kw_only=True)
class Line:
    """`fixed + per unit x value`, with the range that the points leave open (90 %).

    Two points leave none that could be known.
    """

    fixed_bytes: int
    bytes_per_unit: float
    low: float | None
    high: float | None

    def at(self, value: int) -> int:
        return self.fixed_bytes + round(self.bytes_per_unit * value)


@dataclass(frozen=True, kw_only=True)
class Sweep(ShownInNotebooks):
    """The answer of `memfit sweep`."""

    command: tuple[str, ...]
    knob: str
    target: str = ""
    limit_bytes: int
    limit_source: str
    points: tuple[Point, ...]
    line: Line | None
    largest: Mapping[str, tuple[int, int]]  # hardware to its bytes and the largest value there
    # The same by the plan: None where any value fits, missing where it was not planned.
    planned: Mapping[str, int | None] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    seconds: float
    network: bool = False  # whether the target could use it

    def is_extrapolated(self, value: int) -> bool:
        """Whether a value is more than one doubling away from all that fitted and was measured."""
        done = [point.value for point in self.points if point.outcome is Outcome.DONE]
        low, high = min(done, default=0), max(done, default=0)
        return value > _DOUBLING * high or 0 < _DOUBLING * value < low

    @property
    def line_points(self) -> tuple[tuple[int, int], ...]:
        """The ends of the line: at nothing, and at the largest value that was asked for."""
        if self.line is None:
            return ()
        last = max((point.value for point in self.points), default=0)
        return tuple((value, self.line.at(value)) for value in (0, last))

    @property
    def confinement(self) -> Confinement | None:
        """What held the target; None of a command, which is run as it is."""
        return self.points[0].confinement if self.points else None


@dataclass(frozen=True, kw_only=True)
class SweepStep:
    """Where a sweep is: which run of how many, at which value, and what it holds so far."""

    number: int
    of: int
    knob: str
    value: int
    peak_bytes: int
    seconds: float
    outcome: Outcome | None = None
