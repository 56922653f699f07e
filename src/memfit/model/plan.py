"""A plan: what a run will need, whether it fits, and what would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memfit.model.confinement import Confinement
from memfit.model.finding import Advice, Finding
from memfit.model.ledger import Ledger
from memfit.model.notebook import ShownInNotebooks
from memfit.model.reading import Readings
from memfit.model.runspec import RunSpec


@dataclass(frozen=True, kw_only=True)
class Limit:
    """How much memory the run may use, and what says so (`cgroup v2`, `RAM`, `--limit`)."""

    bytes: int
    source: str

    @classmethod
    def given(cls, amount: int | None) -> Limit | None:
        """The limit that a user asked for, if any."""
        return None if amount is None else cls(bytes=amount, source="--limit")


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """The largest value of each knob, alone, that fits one machine or card.

    A knob is missing from `largest` where no value of it fits, and `None` where the run does not
    depend on it (or no value up to the search's end reaches the limit).
    """

    hardware: str
    bytes: int
    place: str
    peak_bytes: int
    fits: bool
    largest: Mapping[str, int | None]


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """Where a run goes over its limit: the environment step, the phase, and the largest row."""

    step: int
    moment: str
    because: str


@dataclass(frozen=True, kw_only=True)
class DevicePlan:
    """What a run needs on a card of `bytes`; `ledger` has its rows.

    `peak_bytes` is what `nvidia-smi` would show: what the allocator reserves, and the context.
    """

    name: str
    bytes: int
    ledger: Ledger
    peak_allocated: int
    peak_reserved: int
    other_settings: Mapping[str, int] = field(default_factory=dict)  # reserved under these

    @property
    def peak_bytes(self) -> int:
        return self.ledger.peak.bytes

    @property
    def fits(self) -> bool:
        return self.peak_bytes <= self.bytes


@dataclass(frozen=True, kw_only=True)
class Plan(ShownInNotebooks):
    """The answer of `memfit plan`."""

    target: str
    spec: RunSpec
    ledger: Ledger
    peak_bytes: int
    upper_bytes: int
    limit: Limit
    method: str
    doubt: Mapping[str, int] = field(default_factory=dict)  # bytes of the peak, by their cause
    capacity: tuple[Capacity, ...] = ()
    crossing: Crossing | None = None
    findings: tuple[Finding, ...] = ()
    hidden_findings: int = 0  # about too few bytes to be shown unless asked for
    advice: tuple[Advice, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    planner_peak_bytes: int = 0
    changed: Mapping[str, int] = field(default_factory=dict)
    network: bool = False  # whether the script could use it
    confinement: Confinement | None = None
    per: str = ""  # the setting of which each row says what one more would add
    device: DevicePlan | None = None  # of which `ledger` has no rows
    readings: Readings | None = None  # from which bounds at other settings are worked out
    output: str = ""  # what the target printed meanwhile

    @property
    def unattributed_bytes(self) -> int:
        """What of the peak no row explains."""
        return self.ledger.unattributed(self.ledger.peak.moment)

    @property
    def fits_machine(self) -> bool:
        return self.peak_bytes <= self.limit.bytes

    @property
    def fits(self) -> bool:
        return self.fits_machine and (self.device is None or self.device.fits)
