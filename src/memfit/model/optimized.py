"""What became of fixes that were tried on a real run, one by one and together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memfit.model.changes import Changes
from memfit.model.confinement import Confinement
from memfit.model.notebook import ShownInNotebooks


@dataclass(frozen=True, kw_only=True)
class TriedFix:
    """One change, or several together, made in a child where the run then trained.

    `saves_bytes` is predicted, two ledgers subtracted; `measured_bytes` is two measured peaks
    subtracted, None where it could not be measured, for the reason in `why_not`. `identical` says
    whether all parameters were the same to the bit after the same number of updates, None where
    that cannot be told. `time_ratio` is the time of these updates beside that of the unchanged
    run, which itself differed by `time_noise` from run to run.
    """

    codes: tuple[str, ...]
    change: str
    saves_bytes: int | None
    safe: bool
    to_rounding: bool = False
    costs: str = ""
    changes: Changes = field(default_factory=Changes)
    peak_bytes: int | None = None
    measured_bytes: int | None = None
    identical: bool | None = None
    time_ratio: float | None = None
    time_noise: float | None = None
    why_not: str = ""

    @property
    def verified(self) -> bool:
        """Whether the saving was measured."""
        return self.measured_bytes is not None

    @property
    def code(self) -> str:
        return "+".join(self.codes)

    @property
    def keeps_training(self) -> bool:
        """Whether it takes the same steps, at least but for the order of sums."""
        return self.safe or self.to_rounding


@dataclass(frozen=True, kw_only=True)
class Goal:
    """What was asked for: a size, or a value of a setting that has to fit into the limit.

    `peak_bytes` was measured of the run that reached it, or came nearest; `missing_bytes` is by how
    much that missed it. Of a setting, `largest` is the value that a plan says would fit.
    """

    text: str
    bytes: int
    knobs: Mapping[str, int] = field(default_factory=dict)
    reached: bool | None = None
    peak_bytes: int | None = None
    missing_bytes: int = 0
    largest: int | None = None


@dataclass(frozen=True, kw_only=True)
class Optimized(ShownInNotebooks):
    """The answer of `memfit optimize`.

    Peaks are measured, but for `planned_bytes` and `upper_bytes`. `repeatable` says whether the
    unchanged run came to the same parameters twice, None where it has none that could be read.
    """

    target: str
    peak_bytes: int | None
    planned_bytes: int
    upper_bytes: int
    limit_bytes: int
    limit_source: str
    tried: tuple[TriedFix, ...] = ()
    together: TriedFix | None = None
    goal: Goal | None = None
    updates: int = 0
    cycles: int = 0
    runs: int = 0
    filled: bool = False
    repeatable: bool | None = None
    patch: str = ""
    written: str = ""
    notes: tuple[str, ...] = ()
    network: bool = False
    confinement: Confinement | None = None
    seconds: float = 0.0

    @property
    def after_bytes(self) -> int | None:
        """The peak with the best set, if one was measured; else without any."""
        best = self.together.peak_bytes if self.together is not None else None
        return self.peak_bytes if best is None else best

    @property
    def fits(self) -> bool:
        """Whether the run fits as it can be made."""
        after = self.planned_bytes if self.after_bytes is None else self.after_bytes
        return after <= self.limit_bytes

    @property
    def saved_share(self) -> float | None:
        """What the best set saves of the peak."""
        if self.together is None or not self.peak_bytes or self.together.measured_bytes is None:
            return None
        return self.together.measured_bytes / self.peak_bytes
