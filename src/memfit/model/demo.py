"""A demonstration: a plan beside what the same run then really used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memfit.model.notebook import ShownInNotebooks
from memfit.model.optimized import Optimized
from memfit.model.plan import Plan
from memfit.model.sweep import Line
from memfit.model.trace import Forecast, Trace


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One row: what was predicted and what was measured."""

    name: str
    predicted: int
    measured: int


@dataclass(frozen=True, kw_only=True)
class RecordedDemo:
    """The same training under the recorder, as it is and made to fit; both measured."""

    trace: Trace
    forecast: Forecast
    changes: tuple[str, ...]
    after: Trace

    @property
    def before_bytes(self) -> int:
        return self.trace.peak.bytes if self.trace.peak else 0

    @property
    def after_bytes(self) -> int:
        return self.after.peak.bytes if self.after.peak else 0

    @property
    def saved_bytes(self) -> int:
        return self.before_bytes - self.after_bytes

    @property
    def saved_share(self) -> float:
        return self.saved_bytes / self.before_bytes if self.before_bytes else 0.0


@dataclass(frozen=True, kw_only=True)
class Demo(ShownInNotebooks):
    """The answer of `memfit demo`: phases and rows, the peak seen from outside, a recording.

    `described` is the plan of a reference system at full size, which is not run.
    """

    described: Plan
    plan: Plan
    phases: tuple[Compared, ...]
    rows: tuple[Compared, ...]
    peak: Compared
    recorded: RecordedDemo
    optimized: Optimized
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
class SystemDemo(ShownInNotebooks):
    """The answer of `memfit demo SYSTEM`; a predicted and a measured line for each training."""

    system: str
    runs: tuple[SystemRun, ...]
    lines: Mapping[str, tuple[Line | None, Line | None]]
    seconds: float

    @property
    def largest_error(self) -> float:
        """How far off the prediction was at the most, as a share."""
        return max((abs(run.error) for run in self.runs), default=0.0)
