"""Notices that the kernel has ended a process of a run for want of memory."""

from __future__ import annotations

import time
from collections.abc import Sequence

from memfit.measure.kernel import proc
from memfit.measure.kernel.cgroup import Group

_DYING_SECONDS = 5.0  # a large process that was killed is still seen for so long


class OomKills:
    """Compares what the kernel counts with who of the run is gone.

    A memory group counts the run's own. Without one there is only the count of the whole machine:
    a process of the run that is gone when it rises, or soon after, is taken for the one.
    """

    def __init__(self, group: Group | None) -> None:
        self._group = group
        # A group is the run's alone: what it has counted before anybody looked is the run's too.
        self._first = self._counted = 0 if group is not None else self._count()
        self._before: set[int] = set()
        self._suspect_until = 0.0

    def found(self, members: Sequence[int], *, killed: bool = False) -> str:
        """A sentence where a process has been ended so since the last time; else nothing.

        `killed` says that SIGKILL has ended the command itself.
        """
        count, now = self._count(), time.monotonic()
        rose, self._counted = count > self._counted, count
        gone = self._before - {pid for pid in members if proc.resident(pid)}
        self._before = set(members)
        if rose:
            self._suspect_until = now + _DYING_SECONDS
        found = rose
        if self._group is None:
            found = (bool(gone) and now < self._suspect_until) or (killed and count > self._first)
        if not found:
            return ""
        self._suspect_until = 0.0
        who = "killed" if killed else "a process of it was killed"
        return f"{who} by the kernel for want of memory"

    def _count(self) -> int:
        if self._group is not None:
            return self._group.killed()
        return proc.figure("/proc/vmstat", "oom_kill ") or 0
