"""Paces the walk: works in small pieces, so that the target's own threads run in between."""

from __future__ import annotations

import time
from collections.abc import Callable

_PIECE_SECONDS = 0.002
_REST_SECONDS = 0.0002


class Interrupted(Exception):
    """The target forks or ends: the answer is given up."""


class Pace:
    """Rests now and then, and knows the longest time without a rest."""

    def __init__(self, stop: Callable[[], bool]) -> None:
        self.stop = stop
        self.began = self.piece = time.perf_counter()
        self.cpu = self.held = time.thread_time()
        self.longest = 0.0

    def rest(self) -> None:
        """Call often: gives way where a piece's time is over."""
        now = time.perf_counter()
        if now - self.piece < _PIECE_SECONDS:
            return
        held = time.thread_time() - self.held
        if held < _PIECE_SECONDS / 2:
            # The time went to others: on a busy machine, giving way again would take for ever.
            self.piece = now
        else:
            self.longest = max(self.longest, held)
            time.sleep(_REST_SECONDS)
            self.held = time.thread_time()
            self.piece = time.perf_counter()
        if self.stop():
            raise Interrupted

    def report(self) -> dict[str, float]:
        return {
            "seconds": round(time.perf_counter() - self.began, 6),
            "cpu_seconds": round(time.thread_time() - self.cpu, 6),
            "longest_hold_seconds": round(max(self.longest, time.thread_time() - self.held), 6),
        }
