"""How fast an environment's memory grows in the long run, over readings at the ends of legs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from memfit.analyses.line import fit
from memfit.model.profile import Counted, EnvReading
from memfit.units import MIB

_STEPS = 1 / 3  # of a pace, that what grows in steps may be off a line
# Pages that fill what was free before tell nothing yet; from so much growth after them, pages tell
# what a byte in use takes; and so much is enough in all.
_AT_FIRST, _PAGES, _ENOUGH = 2 * MIB, 2 * MIB, 16 * MIB
_DOUBLED = 1.9  # times the frames: over a stretch of that length tables that double come to a mean

Amount = Callable[[EnvReading], int]


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Growth by the frame and by the episode, and an interval around the latter."""

    per_frame: float = 0.0
    per_episode: float = 0.0
    low: float = 0.0
    high: float = 0.0

    def times(self, factor: float) -> Pace:
        """The same with all amounts multiplied; the interval holds what it is around."""
        usual = self.per_episode or self.per_frame
        return Pace(
            per_frame=factor * self.per_frame,
            per_episode=factor * self.per_episode,
            low=factor * min(self.low, usual),
            high=factor * max(self.high, usual),
        )


@dataclass(frozen=True, kw_only=True)
class Legs:
    """Full readings after garbage was collected, by leg, each with the end of the leg before."""

    warm: EnvReading
    legs: tuple[tuple[EnvReading, ...], ...]

    @classmethod
    def of(cls, readings: Sequence[EnvReading]) -> Legs:
        full = [r for r in readings if r.full and r.collected]
        warm, legs = full[0], []
        last = warm
        for number in sorted({r.leg for r in full if r.leg > 0}):
            own = [r for r in full if r.leg == number]
            legs.append((last, *own))
            last = own[-1]
        return cls(warm=warm, legs=tuple(legs))

    @property
    def last(self) -> EnvReading:
        return self.legs[-1][-1]

    @property
    def first(self) -> EnvReading:
        """The end of the first leg: what comes later are no first uses."""
        return self.legs[0][-1]

    @property
    def later(self) -> list[EnvReading]:
        """All readings from the end of the first leg on."""
        return [self.first, *(r for leg in self.legs[1:] for r in leg[1:])]


def in_use(reading: EnvReading) -> int:
    """What Python and malloc have given out."""
    return reading.counts.get(Counted.PYTHON, 0) + reading.counts.get(Counted.MALLOC, 0)


def held(reading: EnvReading) -> int:
    """The kernel's pages."""
    return reading.held


def in_use_and_apart(reading: EnvReading) -> int:
    """What Python and malloc have given out, and the pages that are of neither."""
    return in_use(reading) + reading.apart


def weighed(found: Legs) -> bool:
    """Whether so many pages came that they say what a leak costs in the long run."""
    return found.last.held - found.first.held >= _ENOUGH


def line_of(found: Legs, amount: Amount) -> Pace:
    """Bytes a frame and an episode by a line through the legs after the first, and its interval."""
    points = found.later if len(found.legs) > 1 else list(found.legs[0])
    frames = fit([(r.frame, amount(r)) for r in points])
    episodes = fit([(r.episode, amount(r)) for r in points])
    pace = episodes or frames
    if frames is None or pace is None:
        return Pace()
    slope = pace.bytes_per_unit
    return Pace(
        per_frame=frames.bytes_per_unit,
        per_episode=episodes.bytes_per_unit if episodes else 0.0,
        low=pace.low if pace.low is not None else slope,
        high=pace.high if pace.high is not None else slope,
    )


def last_line_of(found: Legs, amount: Amount) -> Pace:
    """The same through the last leg alone: before, what was free was used first."""
    return line_of(Legs(warm=found.warm, legs=found.legs[-1:]), amount)


def long_run(found: Legs) -> Pace:
    """What goes on being in use, in pages of the kernel where enough of them came to tell.

    Tables that double come in steps, which a line through the middle of it leaves out: their mean
    counts. Steps that are larger than that belong to no leak.
    """
    pace = line_of(found, in_use)
    mean = _mean(found, in_use)
    if pace.per_frame <= 0 or mean <= 0:
        return pace
    times = mean / pace.per_frame
    if abs(times - 1) > _STEPS:
        times = 1.0
    return pace.times(times * _pages_in_use(found))


def _mean(found: Legs, amount: Amount) -> float:
    """The mean of all growth by the frame, over the last doubling of the frames.

    What doubles at a time is met at each of its stages over such a stretch, wherever it ends.
    """
    first, last = found.first, found.last
    points = [
        (r.frame - first.frame, amount(r) - amount(first))
        for r in found.later
        if r.frame > first.frame
    ]
    whole = last.frame - first.frame
    points = [(n, grown) for n, grown in points if _DOUBLED * n >= whole / 1.1]
    if not points:
        return 0.0
    if len(points) == 1 or points[-1][0] < _DOUBLED * points[0][0] / 1.2:
        return points[-1][1] / points[-1][0]
    weighed_sum = sum(
        math.log(b / a) * (grown_a / a + grown_b / b) / 2
        for (a, grown_a), (b, grown_b) in pairwise(points)
    )
    return weighed_sum / math.log(points[-1][0] / points[0][0])


def _pages_in_use(found: Legs) -> float:
    """The pages that a byte in use took, once what was free at first was used up."""
    first, last = found.first, found.last
    begin = next((r for r in found.later if r.held - first.held >= _AT_FIRST), last)
    if last.held - begin.held < _PAGES:
        begin = found.legs[-1][0]
    pages, used = last.held - begin.held, in_use(last) - in_use(begin)
    if pages < _PAGES or used <= 0:
        return 1.0
    # As long as little has grown, pages that are fewer only say that some were free before.
    return pages / used if weighed(found) else max(1.0, pages / used)
