"""A demonstration: a plan beside what the same run then really used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memfit.model.plan import Plan
from memfit.model.sweep import Line


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One row: what was predicted and what was measured."""

    name: str
    predicted: int
    measured: int


@dataclass(frozen=True, kw_only=True)
class Demo:
    """The answer of `memfit demo`: phases and rows, and the peak seen from outside."""

    plan: Plan
    phases: tuple[Compared, ...]
    rows: tuple[Compared, ...]
    peak: Compared
    updates: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class DemoVariant:
    """One way of a reference system to train: its spec, its command line, and the sizes to show.

    `{value}` in the options is the size; `knobs` are other settings of the spec that they change.
    """

    name: str
    spec: str
    knob: str
    options: str
    values: Sequence[int]
    knobs: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class SystemRun:
    """A reference system at one size: its plan, and what it really took."""

    training: str
    knob: str
    value: int
    predicted: int
    upper: int
    measured: int
    seconds: float

    @property
    def error(self) -> float:
        return (self.predicted - self.measured) / self.measured


@dataclass(frozen=True, kw_only=True)
class SystemDemo:
    """The answer of `memfit demo SYSTEM`; a predicted and a measured line for each training."""

    system: str
    runs: tuple[SystemRun, ...]
    lines: Mapping[str, tuple[Line | None, Line | None]]
    seconds: float
