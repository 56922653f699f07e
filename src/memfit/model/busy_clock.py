"""A clock for short pieces of work that other work on the machine slows down little."""

from __future__ import annotations

import time

_MOST_SLOWED = 4  # wall time counts as if others took three quarters of it


class BusyClock:
    """The time that this thread has been busy; waiting for other processes counts in part.

    What a plan does in a given time must not depend on what else is running.
    """

    def __init__(self) -> None:
        self._busy, self._wall = time.thread_time(), time.perf_counter()

    def busy(self) -> float:
        """How long this thread has worked since the clock was made."""
        return time.thread_time() - self._busy

    def seconds(self) -> float:
        """The same, with a part of the time in which it waited."""
        return max(self.busy(), (time.perf_counter() - self._wall) / _MOST_SLOWED)
