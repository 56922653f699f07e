"""Who of a study may run: shares of a limit, given to as many as fit together."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass

from memfit.measure.kernel import proc

_LOOK_SECONDS = 0.2
_MOST_PASSED = 8  # times that a large one lets others go first


class Stopped(Exception):
    """The study has ended while somebody waited."""


@dataclass(eq=False, kw_only=True)
class Place:
    """A share that somebody waits for or has; None is all that there is, for one alone."""

    share: int | None
    trial: bool = True
    passed: int = 0


class Room:
    """A limit, less what the study's own process holds, dealt out in shares.

    Of those that wait, the largest that fits goes first, so that little is left over; one that was
    passed over too often lets nobody else go. Pages of libraries that all map count once.
    """

    def __init__(self, limit: int, most: int | None) -> None:
        self.limit = limit
        self.most = most
        self.running: list[Place] = []
        self.waiting: list[Place] = []
        self.most_at_once = 0
        self._files: int | None = None
        self._changed = threading.Condition()

    @property
    def usable(self) -> int:
        """What trials may hold together."""
        own = proc.rollup(os.getpid())
        return self.limit - (own.pss if own is not None else 0)

    def note_files(self, amount: int) -> None:
        """A trial has mapped so much of files: every other will, if it is of the same libraries."""
        with self._changed:
            self._files = amount if self._files is None else min(self._files, amount)
            self._changed.notify_all()

    def enter(self, share: int | None, stop: Callable[[], bool], *, trial: bool = True) -> Place:
        """Wait for a place; `Stopped` where the study ends first."""
        place = Place(share=share, trial=trial)
        with self._changed:
            self.waiting.append(place)
            try:
                while not self._may(place):
                    self._changed.wait(_LOOK_SECONDS)
                    if stop():
                        raise Stopped
            finally:
                self.waiting.remove(place)
                self._changed.notify_all()
            for other in self.waiting:
                other.passed += 1
            self.running.append(place)
            self.most_at_once = max(self.most_at_once, sum(p.trial for p in self.running))
            return place

    def leave(self, place: Place) -> None:
        """Give a place back."""
        with self._changed:
            self.running.remove(place)
            self._changed.notify_all()

    def _may(self, place: Place) -> bool:
        late = [p for p in self.waiting if p.passed > _MOST_PASSED]
        if late:
            return place is late[0] and self._fits(place)
        fitting = [p for p in self.waiting if self._fits(p)]
        return bool(fitting) and place is max(fitting, key=_size)

    def _fits(self, place: Place) -> bool:
        if not self.running:
            return True
        if place.share is None or any(p.share is None for p in self.running):
            return False
        trials = [p for p in self.running if p.trial]
        if place.trial and self.most is not None and len(trials) >= self.most:
            return False
        given = sum(p.share or 0 for p in self.running)
        return given + place.share - (self._files or 0) * len(self.running) <= self.usable


def _size(place: Place) -> float:
    return float("inf") if place.share is None else place.share
