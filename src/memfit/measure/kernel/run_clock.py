"""The time that a process has had, without what its main thread waited for a processor.

On a machine that is busy with others, seconds of the wall clock say little of what has been done.
"""

from __future__ import annotations

import os
import time


class RunClock:
    """Seconds on the scale of `time.perf_counter`, less what its main thread has waited.

    Where the kernel does not tell, nothing is taken off.
    """

    def __init__(self) -> None:
        self.waited = 0.0
        try:
            path = f"/proc/self/task/{os.getpid()}/schedstat"
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._file = -1
        self.refresh()

    def __call__(self) -> float:
        return time.perf_counter() - self.waited

    def refresh(self) -> None:
        """Read anew what it has waited."""
        words = os.pread(self._file, 100, 0).split() if self._file >= 0 else []
        if len(words) > 1:
            self.waited = int(words[1]) / 1e9
