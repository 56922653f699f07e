"""A line through measured points that a few odd ones cannot bend."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import median

from memfit.model import Line

Pair = tuple[int, int]
_LEAST_VALUES = 3  # for a range around a slope


def fit(points: Sequence[Pair]) -> Line | None:
    """The median slope between points and the median of what remains (Theil and Sen).

    None where there are not two different values. Far-apart points tell more about a slope than
    near ones, so each slope counts as much as its points are apart. Two values have one slope,
    which says nothing about how far off it may be.
    """
    slopes = sorted(
        ((b[1] - a[1]) / (b[0] - a[0]), abs(b[0] - a[0]))
        for a, b in combinations(points, 2)
        if a[0] != b[0]
    )
    if not slopes:
        return None
    slope = _weighted(slopes, 0.5)
    known = len({value for value, _ in points}) >= _LEAST_VALUES
    fixed = median(peak - slope * value for value, peak in points)
    return Line(
        fixed_bytes=round(fixed),
        bytes_per_unit=slope,
        low=_weighted(slopes, 0.05) if known else None,
        high=_weighted(slopes, 0.95) if known else None,
    )


def _weighted(slopes: Sequence[tuple[float, int]], share: float) -> float:
    """The value below which this share of all weight lies."""
    total, passed = sum(weight for _, weight in slopes), 0
    for slope, weight in slopes:
        passed += weight
        if passed >= share * total:
            return slope
    return slopes[-1][0]


def largest(line: Line, room: int) -> int:
    """The largest value whose line stays within so many bytes; 0 if none does."""
    if line.bytes_per_unit <= 0:
        return 0
    value = int((room - line.fixed_bytes) / line.bytes_per_unit)
    while value > 0 and line.at(value) > room:
        value -= 1
    return max(0, value)
