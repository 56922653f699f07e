"""A guard inside a training: its peak, and an error where it comes to hold more than it may."""

from __future__ import annotations

import os
import resource
import threading

from memfit.errors import OverLimit
from memfit.measure.kernel import limits, proc
from memfit.measure.kernel.quiet_thread import quiet_thread
from memfit.units import format_bytes

_LOOK_SECONDS = 0.05


class Guard:
    """Looks at this process and all below it, from a thread, until it is closed.

    It ends nothing by itself: `check`, called wherever the training can stop, raises OverLimit.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.now_bytes = self.peak_bytes = 0
        self._closed = threading.Event()
        self._look()
        self._thread = quiet_thread(self._watch, "memfit-guard")

    def check(self) -> None:
        """Go on, or raise OverLimit."""
        if self.now_bytes > self.limit:
            raise OverLimit(
                f"ended at {format_bytes(self.now_bytes)}, over the limit of "
                f"{format_bytes(self.limit)}"
            )

    def close(self) -> None:
        """Stop looking, after a last look."""
        self._closed.set()
        self._thread.join()
        self._look()

    def __enter__(self) -> Guard:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _watch(self) -> None:
        while not self._closed.wait(_LOOK_SECONDS):
            self._look()

    def _look(self) -> None:
        own = os.getpid()
        self.now_bytes = proc.tree_memory(own).pss
        # The kernel remembers this process's own spikes, however short.
        self.peak_bytes = max(self.peak_bytes, self.now_bytes, proc.high_water(own))


def usable_bytes() -> int:
    """What this process may come to hold as things are: its limit, or what the machine has free."""
    limit, free = limits.memory_limit().bytes, limits.available()
    return min(limit, free) if free else limit


def refuse_beyond(room: int) -> None:
    """Have the kernel refuse this process memory beyond what it has reserved and so much more.

    What is refused raises MemoryError, or what a library makes of it, before it is touched.
    """
    wanted = proc.reserved() + max(0, room)
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))
