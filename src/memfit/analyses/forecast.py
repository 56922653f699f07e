"""How a run's memory goes on: stable, filling or leaking, and when it reaches the limit.

A training breathes: its memory rises and falls with every rollout and update. What counts is
whether its highs rise. The run is cut into equal stretches of time, and the highs of the stretches
are taken for a drift with two kinds of chance: noise around the drift, which does not add up, and
steps of the drift itself, which do. How neighbouring changes go together tells the two apart.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, quantiles, variance

from memfit.model import Forecast, Growth, Reading

STRETCHES = 30
LEAST_STRETCHES = 6
LEAST_SECONDS = 2.0
_PATHS = 400
_LINE = 1.2  # the variance of a line's slope through a walk, times the number of its steps
_FAR = 400  # stretches beyond which a crossing is as good as never
_SURE = 2.6  # a drift counts as growth when it is so many standard errors above zero
_LEAST_GROWTH = 0.01  # of the memory held, over the whole of what was seen
_FULL = 0.01  # of what was filled: so little room left is none
_EXPLAINED = 0.7  # of the growth by blocks that have room left


def forecast(readings: Sequence[Reading], limit: int | None) -> Forecast:
    """What the readings so far say about the rest of the run."""
    recent = _settled(readings)
    highs = _highs(recent)
    if len(highs) < LEAST_STRETCHES or recent[-1].seconds - recent[0].seconds < LEAST_SECONDS:
        return Forecast(growth=Growth.UNKNOWN, bytes_per_second=0.0)
    width = (recent[-1].seconds - recent[0].seconds) / len(highs)
    drift = _Drift(highs)
    now = max(r.bytes for r in recent[-max(1, len(recent) // len(highs)) :])
    rate = drift.mean / width
    grown = drift.mean * (len(highs) - 1)
    if drift.mean <= _SURE * drift.error or grown < _LEAST_GROWTH * now:
        return Forecast(growth=Growth.STABLE, bytes_per_second=max(0.0, rate))
    filled = recent[-1].filling - recent[0].filling
    growth, full = Growth.LEAKING, None
    if filled >= _EXPLAINED * grown:
        if recent[-1].room <= _FULL * filled:
            return Forecast(growth=Growth.STABLE, bytes_per_second=0.0)
        # A block that is reserved already ends at its size, whatever the slope.
        growth, full = Growth.FILLING, now + recent[-1].room
    at, low, high = None, None, None
    if limit is not None and (full is None or full > limit):
        at, low, high = _crossing(now, drift, width, limit, recent[-1].seconds)
    return Forecast(
        growth=growth,
        bytes_per_second=rate,
        ends_at_bytes=full,
        reaches_limit_at=at,
        low=low,
        high=high,
        step=_step_at(recent, at),
    )


def _settled(readings: Sequence[Reading]) -> Sequence[Reading]:
    """The later part of a run: imports, building and first use are not growth.

    The start is over where the largest jump of the first half ends.
    """
    if len(readings) < 4 * LEAST_STRETCHES:
        return readings
    half = len(readings) // 2
    return readings[half // 2 :] if _rises_early(readings, half) else readings


def _rises_early(readings: Sequence[Reading], half: int) -> bool:
    quarter = readings[half // 2].bytes - readings[0].bytes
    rest = max(r.bytes for r in readings[half:]) - readings[half // 2].bytes
    return quarter > 2 * max(0, rest)


def _highs(readings: Sequence[Reading]) -> list[int]:
    """The high of each of so many equal stretches of time; stretches without readings are left."""
    if len(readings) < 2:
        return []
    first, last = readings[0].seconds, readings[-1].seconds
    count = min(STRETCHES, len(readings) // 2)
    if count < 1 or last <= first:
        return []
    highs: list[int | None] = [None] * count
    for reading in readings:
        at = min(count - 1, int((reading.seconds - first) / (last - first) * count))
        highs[at] = max(highs[at] or 0, reading.bytes)
    return [high for high in highs if high is not None]


class _Drift:
    """The mean change from stretch to stretch, and what it is made of."""

    def __init__(self, highs: Sequence[int]) -> None:
        changes = [float(b - a) for a, b in pairwise(highs)]
        self.count = len(changes)
        self.changes = changes
        self.mean = _slope(highs)
        spread = variance(changes) if len(changes) > 1 else 0.0
        together = _covariance(changes)
        self.noise = math.sqrt(max(0.0, -together))
        self.steps = math.sqrt(max(0.0, spread - 2 * self.noise**2))
        n = len(highs)
        # Noise around a line makes its slope uncertain by sqrt(12 / n^3), steps by sqrt(1.2 / n).
        of_noise = 12 * self.noise**2 / max(1, n**3)
        self.error = math.sqrt(of_noise + _LINE * self.steps**2 / max(1, self.count))


def _slope(highs: Sequence[int]) -> float:
    """The slope of the line through the highs, by least squares."""
    n = len(highs)
    middle, mean = (n - 1) / 2, fmean(highs)
    above = sum((i - middle) * (high - mean) for i, high in enumerate(highs))
    return above / sum((i - middle) ** 2 for i in range(n))


def _covariance(changes: Sequence[float]) -> float:
    """How each change goes with the next."""
    if len(changes) < 3:
        return 0.0
    mean = fmean(changes)
    pairs = pairwise(changes)
    return fmean((a - mean) * (b - mean) for a, b in pairs)


def _crossing(
    now: int, drift: _Drift, width: float, limit: int, seconds: float
) -> tuple[float | None, float | None, float | None]:
    """When the limit is reached: the likely time, and the bounds of 90 cases in 100."""
    if now >= limit:
        return seconds, seconds, seconds
    draw = random.Random(0)
    times = [seconds + width * _path(limit - now, drift, draw) for _ in range(_PATHS)]
    cut = quantiles(times, n=20, method="inclusive")
    never = seconds + width * _FAR
    high = cut[18] if cut[18] < never else None
    return cut[9] if cut[9] < never else None, cut[0], high


def _path(missing: float, drift: _Drift, draw: random.Random) -> float:
    """How many stretches one possible future takes to add what is missing."""
    mean = draw.gauss(drift.mean, drift.error)
    missing += draw.gauss(0.0, drift.noise)
    if missing <= 0:
        return 0.0
    if not drift.steps:
        return min(_FAR, missing / mean) if mean > 0 else _FAR
    seen = draw.choices(drift.changes, k=drift.count)
    held, before = 0.0, 0.0
    for stretch in range(_FAR):
        before, held = held, held + draw.choice(seen)
        if held >= missing:
            return stretch + (missing - before) / max(held - before, 1e-9)
    return float(_FAR)


def _step_at(readings: Sequence[Reading], seconds: float | None) -> int | None:
    """The environment step at a time, by the pace so far."""
    known = [r for r in readings if r.step is not None]
    if seconds is None or len(known) < 2 or known[-1].seconds - known[0].seconds < LEAST_SECONDS:
        return None
    first, last = known[0], known[-1]
    assert first.step is not None and last.step is not None
    pace = (last.step - first.step) / (last.seconds - first.seconds)
    return round(last.step + pace * (seconds - last.seconds))
