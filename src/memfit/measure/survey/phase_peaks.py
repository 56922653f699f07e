"""The peak of each phase of a run, read so cheaply that it can be after every env step."""

from __future__ import annotations

import os
import time

from memfit.measure.kernel.proc import tree_memory

_TREE_SECONDS = 0.25  # between two looks at all processes, which hold them up
_REST = 4  # times as long as a look has taken, at least
_MARK = b"VmHWM:"


class PhasePeaks:
    """Peaks by phase, from the kernel's own high-water mark, which each reading starts anew.

    What other processes hold, and what of shared pages is not this one's, is added: `beside` as it
    was at the last look at the whole tree, and of a phase the most that was seen since the last
    reading.
    """

    def __init__(self) -> None:
        self.bytes: dict[str, int] = {}
        self.highest = 0
        self._status = os.open("/proc/self/status", os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._reset = os.open("/proc/self/clear_refs", os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            self._reset = -1
        self.beside = self._most = 0
        self._next = 0.0  # when to look again
        self._alone = True  # no other process was there

    def close(self, phase: str) -> None:
        """What came since the last reading was this phase."""
        mark = self._high_water()
        if time.monotonic() > self._next:
            self._look()
        peak = mark + max(self._most, self.beside)
        self._most = self.beside
        self.bytes[phase] = max(self.bytes.get(phase, 0), peak)
        self.highest = max(self.highest, peak)
        if self._reset >= 0:
            os.write(self._reset, b"5")

    def watch(self) -> None:
        """See what other processes hold between two readings, if there are any."""
        if not self._alone and time.monotonic() > self._next:
            self._look()

    def now(self) -> int:
        """The tree's bytes, as if alone on the machine."""
        return self._look()

    def _look(self) -> int:
        began = time.monotonic()
        tree = tree_memory(os.getpid())
        if tree.main is not None:
            self.beside = tree.alone - tree.main.rss
            self._most = max(self._most, self.beside)
        self._alone = tree.processes <= 1
        took = time.monotonic() - began
        self._next = began + took + max(_TREE_SECONDS, _REST * took)
        return tree.alone

    def _high_water(self) -> int:
        text = os.pread(self._status, 8192, 0)
        at = text.find(_MARK)
        return int(text[at + len(_MARK) : text.find(b"k", at)]) * 1024 if at >= 0 else 0
