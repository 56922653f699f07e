"""When memory that grows reaches a limit: the likely time, and the bounds of 90 cases in 100.

The limit is reached by a high, which stands on the lower envelope. How fast that rises is known
from its stretches, the less exactly the less evenly it rose; so is what comes.
"""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import fmean, median, pvariance

from memfit.analyses.growth import Window

_WIDTH = 2.0  # standard deviations of the rate to either side
_PACE = 0.12  # of the rate: how exactly a pace keeps to itself at the best
_SURELY_MORE = 0.05  # of the rate that is left at the least: beyond, it may never come


def limit_time(
    window: Window, limit: int, seconds: float
) -> tuple[float | None, float, float | None]:
    """When the limit is reached; the earliest and the latest, or None for never."""
    rate = window.rate
    if rate <= 0:
        return None, seconds, None
    # What rises is lowest where a stretch begins, and highest where it ends.
    begins = [window.begin + i * window.width - seconds for i in range(len(window.lows))]
    base = median(low - rate * at for at, low in zip(begins, window.lows, strict=True))
    ends = [at + window.width for at in begins]
    above = [high - base - rate * at for at, high in zip(ends, window.highs, strict=True)]
    near, usual, far = max(above), median(above), min(above)
    soon, likely, late = (max(0.0, limit - base - high) for high in (near, usual, far))
    wide = _WIDTH * _error(window, rate, likely / rate)
    slow = 1 - wide
    low = seconds + soon / (rate * (1 + wide))
    high = seconds + late / (rate * slow) + window.width if slow > _SURELY_MORE else None
    at = seconds + likely / rate
    return max(at, low), low, None if high is None else max(high, at, low)


def _error(window: Window, rate: float, ahead: float) -> float:
    """The standard deviation of the rate until then, as a share of it.

    Noise around the envelope makes two neighbouring changes go against each other; only what they
    do not take back adds up.
    """
    changes = [b - a for a, b in pairwise(window.lows)]
    mean = fmean(changes)
    together = fmean((a - mean) * (b - mean) for a, b in pairwise(changes))
    walk = max(0.0, pvariance(changes) + 2 * together)
    each = math.sqrt(walk) / (rate * window.width)
    times = 1 / len(changes) + window.width / max(ahead, window.width)
    return math.sqrt(_PACE**2 + each**2 * times)
