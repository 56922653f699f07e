"""What a survey finds on its way, before it becomes readings."""

from __future__ import annotations

from dataclasses import dataclass, field

from memfit.model import NO_SLOPE, Slope


@dataclass(kw_only=True)
class Found:
    """The fields of `memfit.model.Readings` that a survey fills in; every number is bytes."""

    stopped: int
    reset: int = 0
    warm: int = 0
    retained: int = 0
    seen: int = 0
    batch: int = 0
    whole_rollout: bool = False
    flattened: bool = False
    matched_share: float = 1.0
    assumed: bool = False
    activations: Slope | None = None
    live: Slope = NO_SLOPE
    graph: Slope = NO_SLOPE
    gather: Slope = NO_SLOPE
    growth: dict[str, Slope] = field(default_factory=dict)
    growth_spread: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def line_through(low: int, high: int, at_low: int, at_high: int) -> Slope:
    """The line through two points."""
    per_unit = (at_high - at_low) // max(1, high - low)
    return Slope(fixed=at_low - per_unit * low, per_unit=per_unit)
