"""Lines through two measured points."""

from __future__ import annotations

from memfit.model import Slope


def line_through(low: int, high: int, at_low: int, at_high: int) -> Slope:
    """The line through two points; level where they are one."""
    per_unit = (at_high - at_low) // (high - low) if high > low else 0
    return Slope(fixed=at_low - per_unit * low, per_unit=per_unit)
