"""Steps an environment as long as it takes to tell whether it leaks: one leg after the other."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from memfit.analyses.leak_pace import in_use
from memfit.analyses.leak_verdict import growing, judge, suspected, weighed
from memfit.measure.profile.stepper import Stepper
from memfit.model.profile import Counted, EnvReading, Judgement, ProfileStep
from memfit.model.stepping_words import Command

_LATEST = 4  # a part of a leg ends at an episode's end, at the latest after so many times itself
_PARTS = 4  # of the legs in which growth is confirmed
_FINE_PARTS, _FINE = 8, 5  # of those from this leg on: what grows in steps is met at each stage
_LEAST_EPISODES = 3  # to warm up
# Of the loop's time that quick readings may take, and what the first is taken to cost, in seconds.
_READING_SHARE, _READING_SECONDS = 0.02, 0.002
# What grows is followed for at least so many times the frames and seconds, and at most so many.
_LEAST_FACTOR, _LEAST_SECONDS, _MOST_FACTOR, _MOST_SECONDS, _MOST_LEGS_LONGER = 8, 1.0, 32, 6.0, 4
_WEIGHED_FACTOR = 4096  # where something grows whose pages are too few to be told
# Threads or files that may come, and processes: a machine has only so many.
_MOST_THINGS = {Counted.THREADS: 128, Counted.FILES: 128, Counted.PROCESSES: 3}
_WALK_SECONDS = 20.0

Holders = dict[tuple[str, str], tuple[int, int]]
Watching = Callable[[ProfileStep], None]


@dataclass(kw_only=True)
class Followed:
    """What was seen of one environment, and the verdict over it."""

    readings: list[EnvReading] = field(default_factory=list)
    judgement: Judgement
    held_before: Holders = field(default_factory=dict)
    held_after: Holders = field(default_factory=dict)
    frames_between: int = 0
    grown_between: int = 0  # bytes, between the two looks at who holds what
    collector_off: bool = False


class Follower:
    """Steps one environment in legs, each read at its end, and judges it."""

    def __init__(self, stepper: Stepper, *, frames: int, every: int, tell: Watching) -> None:
        self.stepper = stepper
        self.frames = frames
        self.every = every
        self.tell = tell
        self.readings: list[EnvReading] = []

    def follow(self) -> Followed:
        """All legs that it takes, and the verdict."""
        self._warm_up()
        self._first_leg()
        before: Holders = {}
        begun = self.readings[-1]
        leg = 1
        while suspected(self.readings) and self._goes_on(leg):
            if leg == 1:
                before = self.stepper.holders(_WALK_SECONDS)
                begun = self.readings[-1]
            leg += 1
            self._further_leg(leg)
        after = self.stepper.holders(_WALK_SECONDS) if growing(self.readings) else {}
        return Followed(
            readings=self.readings,
            judgement=judge(self.readings, self._trimmed()),
            held_before=before,
            held_after=after,
            frames_between=self.readings[-1].frame - begun.frame,
            grown_between=in_use(self.readings[-1]) - in_use(begun),
            collector_off=not self.stepper.said.collects,
        )

    def _warm_up(self) -> None:
        """First uses: a quarter of the frames, and some episodes if they end in time."""
        part = max(1, self.frames // 4)
        said = self.stepper.step(part, _LATEST * part)
        while said.episodes < _LEAST_EPISODES and said.frames < self.frames:
            said = self.stepper.step(said.frames + 1, self.frames)
        self.stepper.do(Command.COLLECT)
        self._note(self.stepper.full(0, collect=True))

    def _first_leg(self) -> None:
        """The frames that were asked for, read on the way, and all that is counted at its end."""
        self.read_on_the_way(self.readings[-1].frame)
        self._note(self.stepper.quick(1))  # with the garbage that the next one is without
        self._note(self.stepper.full(1, collect=True))

    def read_on_the_way(self, begin: int) -> None:
        """The frames that were asked for, with quick readings as far as they cost little.

        Where one would take more than its share of the loop's time, it goes on without a stop to
        where it does not.
        """
        started, looped = time.monotonic(), self.stepper.said.nanoseconds
        at, end, cost = begin, begin + self.frames, _READING_SECONDS
        steps = self.every
        while at < end:
            to = min(end, at + steps)
            said = self.stepper.step(to, to + _LATEST * self.every)
            at = max(to, said.frames)
            loop = (said.nanoseconds - looped) / 1e9
            spent = time.monotonic() - started - loop
            if spent + cost <= _READING_SHARE * loop:
                self._note(self.stepper.quick(1))
                now = time.monotonic() - started - loop
                spent, cost = now, now - spent
            wait = (spent + cost) / _READING_SHARE - loop
            pace = loop / max(1, said.frames - begin)
            steps = self.every * max(1, math.ceil(wait / max(pace, 1e-9) / self.every))

    def _further_leg(self, leg: int) -> None:
        """As many frames as there were before, so that episodes double, in parts."""
        self._leg(leg, self.readings[-1].frame)

    def _leg(self, leg: int, frames: int) -> None:
        parts = _PARTS if leg < _FINE else _FINE_PARTS
        begin, part = self.readings[-1].frame, max(1, frames // parts)
        for number in range(1, parts + 1):
            to = begin + number * part
            self.stepper.step(to, to + _LATEST * part)
            self._note(self.stepper.full(leg, collect=True))

    def _goes_on(self, leg: int) -> bool:
        """Whether a further leg is to be stepped: at least two where something grows."""
        last, first = self.readings[-1], self.readings[0]
        seconds = last.seconds
        if leg < 2:
            return True
        for what, most in _MOST_THINGS.items():
            if last.counts.get(what, 0) - first.counts.get(what, 0) >= most:
                return False  # these are counted, not weighed
        own = (last.frame - first.frame) / max(1, self.frames)
        light = bool(growing(self.readings)) and not weighed(self.readings)
        longest = _WEIGHED_FACTOR if light else _MOST_FACTOR
        if own >= longest or 2 * seconds > max(_MOST_SECONDS, _MOST_LEGS_LONGER * self._leg_1):
            return False
        return light or own < _LEAST_FACTOR or seconds < _LEAST_SECONDS

    @property
    def _leg_1(self) -> float:
        return max(r.seconds for r in self.readings if r.leg <= 1)

    def _trimmed(self) -> int:
        """What malloc gives back when it is asked to."""
        before = self.stepper.quick(self.readings[-1].leg).held
        self.stepper.do(Command.TRIM)
        return max(0, before - self.stepper.quick(self.readings[-1].leg).held)

    def _note(self, reading: EnvReading) -> None:
        self.readings.append(reading)
        self.stepper.look()
        wanted = self.frames * (1 if reading.leg <= 1 else 1 << (reading.leg - 1))
        self.tell(
            ProfileStep(
                stage="stepping" if reading.leg <= 1 else "it grew: stepping on",
                frame=reading.frame,
                of=max(reading.frame, wanted),
                frames_per_second=reading.frame / reading.seconds if reading.seconds else 0.0,
                bytes=reading.whole,
            )
        )
