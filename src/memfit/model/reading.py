"""Readings: what was measured in the child process that held a run's objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memfit.model.trial import TrialReading


@dataclass(frozen=True, kw_only=True)
class Slope:
    """Bytes that grow with a unit of the run: `fixed + per_unit * unit`."""

    fixed: int
    per_unit: int

    @classmethod
    def through(cls, low: int, high: int, at_low: int, at_high: int) -> Slope:
        """The line through two points; level where they are one."""
        per_unit = (at_high - at_low) // (high - low) if high > low else 0
        return cls(fixed=at_low - per_unit * low, per_unit=per_unit)

    def at(self, unit: int) -> int:
        return self.fixed + self.per_unit * unit


NO_SLOPE = Slope(fixed=0, per_unit=0)


@dataclass(frozen=True, kw_only=True)
class WorkerReading:
    """Worker processes: what one more costs, and what they have in common.

    Where they run several envs each, `envs` is how many they run together, and one of these costs
    `env_bytes` beside what a worker has anyway.
    """

    started: int
    each_bytes: int
    shared_bytes: int
    envs: int = 0
    env_bytes: int = 0

    @property
    def started_bytes(self) -> int:
        own = self.started * self.each_bytes + self.envs * self.env_bytes
        return own + self.shared_bytes


@dataclass(frozen=True, kw_only=True)
class ProcessNames:
    """How processes of a library are named: patterns of command lines, names, and what they are.

    `shared` is the name, and what it is, of the memory that they all share.
    """

    patterns: Sequence[tuple[str, str, str]] = ()
    shared: tuple[str, str] = ("", "")


@dataclass(frozen=True, kw_only=True)
class OtherProcesses:
    """Processes of one kind that a run started beside the workers that its library knows.

    `private_bytes` are of all of them, `what` says how they came to be; those that may run envs
    are `for_envs`. What is `shared` is memory of all of them, once.
    """

    name: str
    count: int
    private_bytes: int
    what: str
    for_envs: bool = True
    shared: bool = False


@dataclass(frozen=True, kw_only=True)
class Rehearsed:
    """A rehearsal's measured peaks by phase, at some values of the knobs that scale the run."""

    knobs: Mapping[str, int]
    moments: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """What a replay added to malloc at each moment, at some values of the run's knobs."""

    knobs: Mapping[str, int]
    growth: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class DeviceReading:
    """What updates would need on a card, from their tensors and a simulation of its allocator.

    `live` is the most that an update has alive at once, gradients among it; `allocated` and
    `reserved` are peaks with all that stays, lines in the samples of a minibatch. `workspaces` are
    those of cuBLAS, `other_settings` what would be reserved under other settings of the allocator.
    """

    live: Slope
    allocated: Slope
    reserved: Slope
    workspaces: int
    matched_share: float = 1.0
    other_settings: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Readings:
    """Resident bytes of the child's process tree at the stages of a survey.

    `stopped` is read where the run would begin to learn, `warm` after a small update. `growth` is
    what the run's own sequence of allocations adds to `warm` at full size, moment by moment, when
    it is replayed through this machine's malloc: a line in the run's `unit`, the samples by which
    it grows. `live` is the most of it that is alive at once, a line in the samples of a minibatch;
    `graph` is what one sample of a rollout that records gradients keeps; `growth_spread` is how
    far single replays went beyond their mean; `further` is the growth at sizes far from the run's
    own. `matched_share` is the share of an update's allocated bytes whose growth with the batch is
    known, `unmatched` what the others would add if they grew with the batch too. `retained` is what
    malloc held free at `warm`. `imported` is what imports added beyond the libraries' own, by the
    import that the run asked for; `held` are large arrays by their path. `assumed` says that no
    update could be run and `live` is a guess. `trial` is what a loop showed that ran on as it is,
    `device` what updates would need on a card.
    """

    stopped: int
    warm: int
    unit: int
    base: int = 0
    imported: Mapping[str, int] = field(default_factory=dict)
    held: Mapping[str, int] = field(default_factory=dict)
    retained: int = 0
    matched_share: float = 1.0
    unmatched: int = 0
    assumed: bool = False
    activations: Slope | None = None
    live: Slope = NO_SLOPE
    graph: Slope = NO_SLOPE
    growth: Mapping[str, Slope] = field(default_factory=dict)
    growth_spread: Mapping[str, int] = field(default_factory=dict)
    further: tuple[Replayed, ...] = ()
    env_each: int = 0
    workers: WorkerReading | None = None
    others: tuple[OtherProcesses, ...] = ()
    save_bytes: int = 0
    pickled_copies: int = 0
    evaluate_bytes: int = 0
    rehearsed: tuple[Rehearsed, ...] = ()
    trial: TrialReading | None = None
    device: DeviceReading | None = None
    notes: tuple[str, ...] = ()

    @property
    def processes_bytes(self) -> int:
        """What processes beside the one that trains hold by themselves."""
        known = self.workers.started_bytes if self.workers else 0
        return known + sum(group.private_bytes for group in self.others)
