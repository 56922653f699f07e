"""Whether a curve of memory grows for good, as a person tells it who looks at it.

The start is left out: importing, building, starting workers. Of the rest the lower envelope counts,
since a training breathes with every rollout and update, and spikes say nothing about what stays.
What grows for good grows in most of the stretches that it is cut into, is not one step, does not
grow less and less, and comes to where the envelope was never before.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, pairwise
from statistics import fmean, median, stdev

from memfit.model import Reading
from memfit.units import MIB

_STRETCHES = 8
LEAST_SECONDS = 20.0  # after the start; before, a first rollout looks like a leak
_LEAST_READINGS = 16
_MOST_GROUPS = 600
_FINER, _READINGS_EACH = 16, 4  # stretches at most, to forecast; readings of each at least
_LEAST_BYTES, _LEAST_SHARE = 14 * MIB, 0.014  # of growth, and of the peak
_LOW = 0.1  # quantile of the readings of a stretch
_RISING = 0.7  # Kendall's tau of the lows
_ONE_STEP = 0.5  # of the growth in one step: no
_RISES, _RISE = 5, 0.2  # so many steps of at least this share of the mean one
# Growth of the second half as a multiple of the first's: never less, nor less by more than chance
# (in standard deviations), nor more.
_LEAST, _LESS, _CHANCE, _MORE = 0.4, 0.65, 1.3, 3.5
_SHORT_SECONDS = 30.0  # what is seen for less time must grow in every stretch, with no chance
_IN_STEPS = 0.85  # of the growth
_LATE = 0.1  # of the growth in the last quarter: it goes on
_NEW = 0.6  # of the growth must be above all that was seen before

# Seconds, and share of the time so far, after which a sign is none of the start any more: of files
# and processes, and of a jump.
_QUIET, _QUIET_SHARE = 30.0, 1.0
_CALM, _CALM_SHARE = 5.0, 0.5
_LONGEST_START = 180.0
_JUMP = 0.03  # more than before within a second
_STAYS = 2.0  # seconds: what goes before is an update's
_FILES, _FILES_SHARE = 4 * MIB, 0.03


@dataclass(frozen=True, kw_only=True)
class Window:
    """The latest part of a run, cut into equal stretches of time: their lows and highs."""

    begin: float
    end: float
    lows: tuple[float, ...]
    highs: tuple[float, ...]

    @property
    def width(self) -> float:
        return (self.end - self.begin) / len(self.lows)

    @property
    def grown(self) -> float:
        return self.lows[-1] - self.lows[0]

    @property
    def first_half(self) -> float:
        """Growth up to the middle."""
        count = len(self.lows)
        return fmean(self.lows[(count - 1) // 2 : count // 2 + 1]) - self.lows[0]

    @property
    def second_half(self) -> float:
        return self.grown - self.first_half

    @property
    def rate(self) -> float:
        """Bytes a second: the median of the slopes between the lows (Theil and Sen)."""
        pairs = combinations(enumerate(self.lows), 2)
        return median((b - a) / (j - i) for (i, a), (j, b) in pairs) / self.width


def start_over(readings: Sequence[Reading]) -> float:
    """When the start was over, in seconds.

    Its signs are more pages of files and more processes than ever, and memory that jumps to where
    it never was, and stays there. It lasts as long as one sign follows the other.
    """
    first = last = held_at = readings[0].seconds
    highest = held = readings[0].bytes
    files = processes = 0
    latest: deque[Reading] = deque()
    for reading in readings:
        at = reading.seconds
        quiet, so_far = at - last, last - first
        if quiet > max(_QUIET, _QUIET_SHARE * so_far) or at - first > _LONGEST_START:
            break
        step = _files_step(files, reading.processes)
        if reading.processes > processes or reading.files > files + step:
            last, files, processes = at, reading.files, max(processes, reading.processes)
        latest.append(reading)
        while at - latest[0].seconds > _STAYS:
            latest.popleft()
        highest = max(highest, min(r.bytes for r in latest))
        if at - held_at >= 1.0:
            jumped = highest > (1 + _JUMP * (at - held_at)) * held
            if jumped and quiet <= max(_CALM, _CALM_SHARE * so_far):
                last = at
            held, held_at = highest, at
    return last


def _files_step(files: int, processes: int) -> float:
    """What more of files is a sign: little of what all have may be much of what one has."""
    return max(_FILES, _FILES_SHARE * files / max(1, processes))


def thinned(readings: Sequence[Reading]) -> list[Reading]:
    """Of many readings the lowest and the highest of so many neighbours."""
    count = -(-len(readings) // _MOST_GROUPS)
    if count <= 2:
        return list(readings)
    found = []
    for at in range(0, len(readings), count):
        group = sorted(readings[at : at + count], key=lambda r: r.bytes)
        found += sorted({id(r): r for r in (group[0], group[-1])}.values(), key=_seconds)
    return found


def _seconds(reading: Reading) -> float:
    return reading.seconds


def windows(readings: Sequence[Reading]) -> list[tuple[Window, float]]:
    """The run after its start, its latest half, quarter and so on; and the highest low before.

    One begins where it was lowest: what the start ended in, or a first update, may be given back.
    """
    begin, end = start_over(readings), readings[-1].seconds
    rest = readings[bisect_left(readings, begin, key=_seconds) :]
    lowest = min(rest, key=lambda reading: reading.bytes).seconds
    lengths, seconds = [end - lowest], end - begin
    while seconds >= LEAST_SECONDS:
        lengths.append(seconds)
        seconds /= 2
    found = []
    for seconds in sorted(set(lengths), reverse=True):
        if seconds < LEAST_SECONDS:
            break
        since = end - seconds
        at = bisect_left(rest, since, key=_seconds)
        if len(rest) - at < _LEAST_READINGS:
            break
        window = cut(rest[at:], since, end, _STRETCHES)
        count = int((since - begin) / window.width)
        highest = max(cut(rest[:at], begin, since, count).lows) if count and at else 0.0
        found.append((window, highest))
    return found


def latest(readings: Sequence[Reading], since: float) -> Window:
    """The part of a run since a time, in finer stretches."""
    part = readings[bisect_left(readings, since, key=_seconds) :]
    count = max(_STRETCHES, min(_FINER, len(part) // _READINGS_EACH))
    return cut(part, since, readings[-1].seconds, count)


def cut(readings: Sequence[Reading], begin: float, end: float, count: int) -> Window:
    """Equal stretches of time; one without a reading is as the one before it, or the first."""
    lows: list[float] = []
    highs: list[float] = []
    at, first = 0, [float(readings[0].bytes)]
    for i in range(1, count + 1):
        last = i == count
        after = begin + i * (end - begin) / count
        upto = len(readings) if last else bisect_left(readings, after, at, key=_seconds)
        part = sorted(r.bytes for r in readings[at:upto])
        lows.append(part[int(_LOW * len(part))] if part else (lows or first)[-1])
        highs.append(part[-1] if part else (highs or first)[-1])
        at = upto
    return Window(begin=begin, end=end, lows=tuple(lows), highs=tuple(highs))


def grows(window: Window, before: float, peak: int) -> bool:
    """Whether it grows for good."""
    lows, grown = window.lows, window.grown
    if grown < max(_LEAST_BYTES, _LEAST_SHARE * peak) or lows[-1] - before < _NEW * grown:
        return False
    steps = [b - a for a, b in pairwise(lows)]
    if max(steps) > _ONE_STEP * grown or -min(steps) > _ONE_STEP * grown:
        return False
    short = window.end - window.begin < _SHORT_SECONDS
    rises = sum(step >= _RISE * grown / len(steps) for step in steps)
    if rises < (len(steps) if short else _RISES):
        return False
    signs = [(b > a) - (b < a) for a, b in combinations(lows, 2)]
    if sum(signs) < _RISING * len(signs):
        return False
    first, second = window.first_half, window.second_half
    less = second < _LEAST * first
    if second < _LESS * first:
        chance = _CHANCE * stdev(steps) * math.sqrt(len(steps))
        less |= first - second > chance or short
    return not less and second <= _MORE * first


def steps_of(readings: Sequence[Reading], window: Window) -> int:
    """In how many steps it grew: the largest that make most of it, each within a second."""
    at = bisect_left(readings, window.begin, key=_seconds)
    kept = list(accumulate((r.bytes for r in reversed(readings[at:])), min))[::-1]
    rises: dict[int, int] = {}
    for i, (before, after) in enumerate(pairwise(kept), at + 1):
        second = int(readings[i].seconds)
        rises[second] = rises.get(second, 0) + after - before
    grown, count = 0, 0
    for rise in sorted(rises.values(), reverse=True):
        if grown >= _IN_STEPS * (kept[-1] - kept[0]):
            break
        grown, count = grown + rise, count + 1
    return count


def may_grow(window: Window, peak: int) -> bool:
    """Whether it may turn out to grow for good: it has grown, and is as high as never."""
    return window.lows[-1] >= max(window.lows) and goes_on(window, peak)


def goes_on(window: Window, peak: int) -> bool:
    """Whether enough of it grew, and some of that lately."""
    enough = window.grown >= max(_LEAST_BYTES, _LEAST_SHARE * peak)
    quarter = len(window.lows) // 4
    return enough and window.lows[-1] - window.lows[-1 - quarter] >= _LATE * window.grown
