"""Growth that slows down, as of caches and pools: told from a leak, and forecast.

Three kinds of curves are known: an approach to an end, as of caches that fill; a root and a
logarithm of time, as of what becomes rare but never stops.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from statistics import fmean, median

from memfit.analyses.growth import Window
from memfit.model import Forecast, Growth, Reading

_CHANCE = 2.6  # standard deviations of Kendall's tau of steps of one pace
# How far above a straight line in the mean, of what it grew: all of it, and its later part.
_BENT, _STILL_BENT = 0.085, 0.055
_FALLING = -1.5  # standard deviations of a slope of the steps
_FIRST = 8  # of so many parts, one may be a jump at the beginning
_LEVEL, _LEAST_LOWS = 0.03, 8  # of the growth: none yet; lows that are left
_SLOWER = 0.9  # growth of the second half as a multiple of the first's
_AS_BEFORE = 0.7  # of the pace before
_KINKED = 0.5  # of the squares that are left of the best curve

_APPROACHES = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0)  # of the time seen
_LOGARITHMS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
_LONGEST = 1000  # times what was seen: beyond, it never comes
_STEP = 1e-3  # of the time seen


@dataclass(frozen=True, kw_only=True)
class _Curve:
    """`base + size * shape(x)`, where x is time as a multiple of what was seen."""

    base: float
    size: float
    shape: Callable[[float], float]
    ends: bool

    def at(self, x: float) -> float:
        return self.base + self.size * self.shape(x)

    @property
    def pace(self) -> float:
        """What it grows by now, in bytes for the time that was seen."""
        return (self.at(1.0) - self.at(1.0 - _STEP)) / _STEP


def slows(window: Window) -> bool:
    """Whether it grows less and less.

    Neighbouring steps are not compared: noise in the low between them sets one against the other.
    """
    lows = _since_it_began(_kept(window))
    kept = replace(window, lows=tuple(lows))
    if kept.grown <= 0 or kept.second_half >= _SLOWER * kept.first_half:
        return False
    steps = [b - a for a, b in pairwise(lows)]
    later = lows[len(lows) // _FIRST :]
    if _bent(lows) >= _BENT and (_bent(later) >= _STILL_BENT or _trend(steps) <= _FALLING):
        return True
    signs = [(b > a) - (b < a) for i, a in enumerate(steps) for b in steps[i + 2 :]]
    n = len(steps)
    deviation = math.sqrt(2 * (2 * n + 5) / (9 * n * (n - 1)))
    return sum(signs) <= -_CHANCE * deviation * len(signs)


def has_slowed(window: Window, whole: Window) -> bool:
    """Whether all growth slows down bit by bit, and is much slower in this latest part of it.

    What went at one pace, and then at another one, has a pace now.
    """
    if window.begin <= whole.begin or not slows(whole):
        return False
    before = (window.lows[0] - whole.lows[0]) / (window.begin - whole.begin)
    if window.grown / (window.end - window.begin) >= _AS_BEFORE * before:
        return False
    return _left_of_two_lines(_kept(whole)) > _KINKED * _best(_kept(whole))[0]


def _kept(window: Window) -> list[float]:
    """The lows without what is higher than it ever is later, as in an update."""
    return list(accumulate(reversed(window.lows), min))[::-1]


def _since_it_began(lows: list[float]) -> list[float]:
    """Without a level stretch before, and the stretch in which it began, where enough is left."""
    most = lows[0] + _LEVEL * (lows[-1] - lows[0])
    level = max(i for i, low in enumerate(lows) if not i or low <= most)
    return lows[min(level + 1, max(0, len(lows) - _LEAST_LOWS)) :] if level else lows


def _bent(lows: Sequence[float]) -> float:
    """How far it is above a straight line in the mean, as a share of what it grew."""
    grown = lows[-1] - lows[0]
    even = (lows[0] + grown * i / (len(lows) - 1) for i in range(len(lows)))
    return fmean(low - at for low, at in zip(lows, even, strict=True)) / max(1.0, grown)


def _trend(steps: Sequence[float]) -> float:
    """The slope of steps over time, in standard deviations."""
    times = [i - (len(steps) - 1) / 2 for i in range(len(steps))]
    spread, mean = sum(at**2 for at in times), fmean(steps)
    slope = sum(at * step for at, step in zip(times, steps, strict=True)) / spread
    left = sum((step - mean - slope * at) ** 2 for at, step in zip(times, steps, strict=True))
    return slope / max(1e-9, math.sqrt(left / (len(steps) - 2) / spread))


def _left_of_two_lines(lows: Sequence[float]) -> float:
    """The squares that are left of the best two lines, one after the other."""
    middles = _middles(len(lows))
    parts = ((lows[:i], lows[i:], middles[:i], middles[i:]) for i in range(3, len(lows) - 2))
    return min(
        _fitted(_straight, False, xs, first)[0] + _fitted(_straight, False, later, second)[0]
        for first, second, xs, later in parts
    )


def _middles(count: int) -> list[float]:
    return [(i + 0.5) / count for i in range(count)]


def _straight(x: float) -> float:
    return x


def slowing(window: Window, limit: int | None, last: Reading) -> Forecast:
    """The forecast of what slows down: never sooner than at its present pace, perhaps never."""
    curve = _best(_kept(window))[1]
    seconds = window.end - window.begin
    middles = _middles(len(window.lows))
    above = [high - curve.at(x) for high, x in zip(window.highs, middles, strict=True)]
    usual, most = median(above), max(above)
    end = round(curve.base + curve.size + max(0.0, usual)) if curve.ends else None
    found = Forecast(
        growth=Growth.FILLING,
        bytes_per_second=curve.pace / seconds,
        ends_at_bytes=None if end is None else max(end, last.bytes),
        since=window.begin,
        grown_bytes=round(window.grown),
        slowing=True,
    )
    if limit is None or curve.pace <= 0:
        return found
    if last.bytes >= limit:
        at = low = last.seconds
    else:
        at_x = _reaches(curve, limit - max(0.0, usual))
        soon = max(0.0, limit - max(0.0, most) - curve.at(1.0)) / curve.pace
        low = last.seconds + soon * seconds
        if at_x is None:
            return found
        at = max(low, window.begin + at_x * seconds)
    return replace(found, reaches_limit_at=at, low=low)


def _best(lows: Sequence[float]) -> tuple[float, _Curve]:
    """The curve through the lows with the least squares left, and these."""
    middles = _middles(len(lows))
    fitted = [_fitted(shape, ends, middles, lows) for shape, ends in _shapes()]
    return min(fitted, key=lambda found: found[0])


def _shapes() -> Iterator[tuple[Callable[[float], float], bool]]:
    for slow in _APPROACHES:
        yield functools.partial(_approaching, slow), True
    for soon in _LOGARITHMS:
        yield functools.partial(_logarithm, soon), False
    yield math.sqrt, False


def _approaching(slow: float, x: float) -> float:
    return -math.expm1(-x / slow)


def _logarithm(soon: float, x: float) -> float:
    return math.log1p(x / soon)


def _fitted(
    shape: Callable[[float], float], ends: bool, xs: Sequence[float], lows: Sequence[float]
) -> tuple[float, _Curve]:
    """A curve of one shape by least squares, and the squares that are left."""
    shapes = [shape(x) for x in xs]
    middle, mean = fmean(shapes), fmean(lows)
    spread = sum((s - middle) ** 2 for s in shapes)
    size = sum((s - middle) * (low - mean) for s, low in zip(shapes, lows, strict=True)) / spread
    curve = _Curve(base=mean - size * middle, size=size, shape=shape, ends=ends)
    return sum((curve.at(x) - low) ** 2 for x, low in zip(xs, lows, strict=True)), curve


def _reaches(curve: _Curve, amount: float) -> float | None:
    """When it comes to so much, as a multiple of the time seen; None where it never does."""
    low, high = 0.0, float(_LONGEST)
    if curve.at(high) < amount:
        return None
    while high - low > _STEP:
        middle = (low + high) / 2
        low, high = (middle, high) if curve.at(middle) < amount else (low, middle)
    return high
