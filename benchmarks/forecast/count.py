"""Judges runs as `memfit run` does while they go on, and counts what was told and what was true."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from statistics import median

from benchmarks.forecast.runs import LEAK, NEITHER, Run
from memfit.analyses.forecast import forecast, verdict
from memfit.model import Forecast, Growth, Reading

MOMENTS = 12  # of each run that grows, drawn from when its growth can be told
_OFTEN, _SELDOM = 5.0, 20.0  # seconds between the moments at which alarms are looked for
_BEGINNING = 120.0  # seconds for which that is done often
_AHEAD = 0.9  # of the run: later moments have too little ahead for a crossing


@dataclass(kw_only=True)
class Count:
    """What was told of the runs of one kind."""

    kind: str
    truth: str
    runs: int = 0
    moments: int = 0  # at which growth was there to be told
    told: int = 0  # as growth at one pace, whether or not it was sure to be a leak
    told_sure: int = 0  # as a leak
    at_once: int = 0  # runs told at the first moment
    tellable: int = 0  # runs with such a moment
    verdicts: int = 0  # right, of all that was seen
    alarms: int = 0  # runs of which a leak was told at any moment, though there is none
    growing: int = 0  # runs of which growth at one pace was told at any moment, or a leak
    early: int = 0  # runs of which a leak was told before it began
    crossings: int = 0
    held: int = 0  # crossings within the interval
    widths: list[float] = field(default_factory=list)  # of intervals, by the time that was ahead

    @property
    def width(self) -> float:
        return median(self.widths) if self.widths else 0.0


def count(count: Count, run: Run, draw: Random) -> None:
    """Judge one run at its moments, and at its end."""
    count.runs += 1
    whole = verdict(run.readings, None, run.members)
    if run.truth == NEITHER:
        count.verdicts += whole.growth is not Growth.LEAKING
    else:
        count.verdicts += whole.growth in _right(run)
    if run.truth == LEAK:
        began = next((r.seconds for r, g in zip(run.readings, run.grown, strict=True) if g), 0.0)
        count.early += _worst(run, began) is not None
    else:
        worst = _worst(run, run.readings[-1].seconds)
        count.alarms += worst is Growth.LEAKING
        count.growing += worst is not None
    if run.truth != NEITHER:
        _count_growth(count, run, draw)


def _right(run: Run) -> tuple[Growth, ...]:
    if run.truth == LEAK:
        return (Growth.LEAKING,)
    last = [r for r in run.readings if r.filling][-1:]  # a program that ends gives all of it back
    return (Growth.FILLING,) if last and last[0].room else (Growth.STABLE,)


def _worst(run: Run, end: float) -> Growth | None:
    """What was told before this time: a leak, growth at one pace, or neither."""
    at, found = 0.0, None
    while (at := at + (_OFTEN if at < _BEGINNING else _SELDOM)) < end:
        growth = forecast(_until(run.readings, at), None).growth
        if growth is Growth.LEAKING:
            return growth
        found = growth if growth is Growth.GROWING else found
    return found


def _count_growth(count: Count, run: Run, draw: Random) -> None:
    first = run.tellable
    if first is None:
        return
    begin, end = run.readings[first].seconds, run.grows_until
    count.tellable += 1
    nearest = min(end, (begin // _OFTEN + 1) * _OFTEN)
    count.at_once += _judged(run, nearest, None).growth in _growths(run)
    for _ in range(MOMENTS):
        at = draw.uniform(begin, begin + _AHEAD * (end - begin))
        seen = _until(run.readings, at)
        limit = max(r.bytes for r in _until(run.readings, draw.uniform(at, end)))
        found = _judged(run, at, limit)
        right = found.growth in _growths(run)
        count.moments += 1
        count.told += right
        count.told_sure += right and found.growth is not Growth.GROWING
        crossed = next(r.seconds for r in run.readings if r.bytes >= limit)
        if crossed <= seen[-1].seconds:
            continue
        count.crossings += 1
        if right and found.reaches_limit_at is not None and found.low is not None:
            late = float("inf") if found.high is None else found.high
            count.held += found.low <= crossed <= late
            count.widths.append((late - found.low) / (crossed - at))


def _growths(run: Run) -> tuple[Growth, ...]:
    return (Growth.LEAKING, Growth.GROWING) if run.truth == LEAK else (Growth.FILLING,)


def _judged(run: Run, at: float, limit: int | None) -> Forecast:
    return forecast(_until(run.readings, at), limit)


def _until(readings: list[Reading], seconds: float) -> list[Reading]:
    return [r for r in readings if r.seconds <= seconds]
