"""Readings: what was measured in the child process that held a run's objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Slope:
    """Bytes that grow with a unit of the run: `fixed + per_unit * unit`."""

    fixed: int
    per_unit: int

    def at(self, unit: int) -> int:
        return self.fixed + self.per_unit * unit


NO_SLOPE = Slope(fixed=0, per_unit=0)


@dataclass(frozen=True, kw_only=True)
class WorkerReading:
    """Subprocess workers (PSS): what one more costs, and what they have in common."""

    started: int
    each_bytes: int
    shared_bytes: int

    @property
    def started_bytes(self) -> int:
        return self.started * self.each_bytes + self.shared_bytes


@dataclass(frozen=True, kw_only=True)
class Rehearsed:
    """A rehearsal's measured peaks by moment, at a batch and a number of buffer rows."""

    batch: int
    rows: int
    moments: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Readings:
    """Resident bytes (PSS of the child's process tree) at the stages of a survey.

    `stopped` is read where the run would begin to learn, `reset` after the env was reset and
    stepped a little, `warm` after a small update. `growth` is what the run's own sequence of
    allocations adds to `warm` at full size, moment by moment, when it is replayed through this
    machine's malloc; `live` is the most of it that is alive at once. Both are lines in the
    update's `batch`; `graph` is what one sample of a rollout that records gradients keeps;
    `growth_spread` is how far single replays went beyond their mean. `retained` is what malloc
    held free at `warm`.
    `seen` is the growth of an update at the run's own batch size, where one was
    cheap enough to run. `assumed` says that no update could be run and `live` is a guess.
    """

    stopped: int
    reset: int
    warm: int
    batch: int
    base: int = 0
    retained: int = 0
    seen: int = 0
    whole_rollout: bool = False
    flattened: bool = False
    matched_share: float = 1.0
    assumed: bool = False
    activations: Slope | None = None
    live: Slope = NO_SLOPE
    gather: Slope = NO_SLOPE
    graph: Slope = Slope(fixed=0, per_unit=0)
    growth: Mapping[str, Slope] = field(default_factory=dict)
    growth_spread: Mapping[str, int] = field(default_factory=dict)
    env_each: int = 0
    workers: WorkerReading | None = None
    save_bytes: int = 0
    pickled_copies: int = 0
    evaluate_bytes: int = 0
    rehearsed: tuple[Rehearsed, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Readings:
        """The readings that `dataclasses.asdict` and JSON took apart."""

        def slope(value: Any) -> Slope | None:
            return None if value is None else Slope(**value)

        workers = data.get("workers")
        return cls(
            **{
                **data,
                "activations": slope(data.get("activations")),
                "live": slope(data["live"]),
                "gather": slope(data["gather"]),
                "graph": slope(data.get("graph", {"fixed": 0, "per_unit": 0})),
                "growth": {name: Slope(**line) for name, line in data["growth"].items()},
                "workers": None if workers is None else WorkerReading(**workers),
                "rehearsed": tuple(Rehearsed(**r) for r in data.get("rehearsed", ())),
                "notes": tuple(data.get("notes", ())),
            }
        )
