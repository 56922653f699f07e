"""Notices that the kernel has ended a process of a run for want of memory."""

from __future__ import annotations

import time
from collections.abc import Sequence

from memfit.measure.kernel import proc
from memfit.measure.kernel.cgroup import Group
from memfit.measure.kernel.endings import Ending, Endings
from memfit.measure.kernel.limits import own_group

_DYING_SECONDS = 5.0  # a large process that was killed is still seen for so long
_LAST_SECONDS = 0.3  # at the end, who is about to go is given so long
_WANT = "killed by the kernel for want of memory"


class OomKills:
    """Compares what the kernel counts with who of the run is gone, and how.

    A memory group of the run's own counts for it, and nothing else is asked. Without one there is
    the count of the whole machine: when it rises, or soon after, a process of the run must have
    ended by SIGKILL to be the one. Where the kernel does not tell how it ended, it may have been,
    if the group that memfit itself is in has counted too; so may one that nobody has seen then.
    """

    def __init__(self, group: Group | None, main: int = 0) -> None:
        self._group = group
        self._main = main
        # A group is the run's alone: what it has counted before anybody looked is the run's too.
        self._counted = 0 if group is not None else self._count()
        self._around = _groups_around() if group is None else []
        self._counted_around = self._count_around()
        self._may_be_until = 0.0
        self._before: set[int] = set()
        self._suspects: set[int] = set()
        self._suspect_until = 0.0
        self._endings = Endings()

    def found(self, members: Sequence[int], *, killed: bool | None = None) -> str:
        """A sentence where a process has been ended so since the last time; else nothing.

        `killed` is for the last time: whether SIGKILL has ended the command itself.
        """
        # The kernel counts before it kills: who is gone now has been counted below.
        present = {pid for pid in members if proc.resident(pid)}
        gone, self._before = self._before - present, present
        count = self._count()
        rose, self._counted = count > self._counted, count
        if self._group is not None:
            return self._sentence(killed=bool(killed)) if rose else ""
        text = self._without_group(gone, rose=rose, killed=killed)
        self._endings.follow(present)
        if killed is not None:
            self._endings.close()
        return text

    def _without_group(self, gone: set[int], *, rose: bool, killed: bool | None) -> str:
        now, last = time.monotonic(), killed is not None
        if rose:
            self._suspect_until = now + _DYING_SECONDS
        if self._count_around() > self._counted_around:
            self._counted_around = self._count_around()
            self._may_be_until = now + _DYING_SECONDS
        if now < self._suspect_until:
            self._suspects |= gone
        else:
            for pid in gone:
                self._endings.forget(pid)
        main = bool(killed) and (self._main in self._suspects or now < self._suspect_until)
        ended = self._ended(last=last)
        sure = main or Ending.KILLED in ended
        unseen = self._may_be_until > 0.0 and (last or now >= self._may_be_until)
        unknown = Ending.UNKNOWN in ended and (self._may_be_until > 0.0 or not self._around)
        if not (sure or unknown or unseen):
            return ""
        self._suspect_until = self._may_be_until = 0.0
        self._suspects.clear()
        return self._sentence(killed=main, sure=sure)

    def _ended(self, *, last: bool) -> list[Ending]:
        """How those ended that may have been the one, but for the command itself."""
        others = self._suspects - {self._main}
        ended = {pid: self._endings.of(pid) for pid in others}
        until = time.monotonic() + _LAST_SECONDS
        while last and Ending.NOT_YET in ended.values() and time.monotonic() < until:
            time.sleep(0.01)
            late = [pid for pid, ending in ended.items() if ending is Ending.NOT_YET]
            ended |= {pid: self._endings.of(pid) for pid in late}
        self._suspects -= {pid for pid in others if ended[pid] is not Ending.NOT_YET}
        return list(ended.values())

    def _sentence(self, *, killed: bool, sure: bool = True) -> str:
        if killed:
            return _WANT
        return f"a process of it {'was' if sure else 'may have been'} {_WANT}"

    def _count(self) -> int:
        if self._group is not None:
            return self._group.killed()
        return proc.figure("/proc/vmstat", "oom_kill ") or 0

    def _count_around(self) -> int:
        return sum(group.killed() for group in self._around)


def _groups_around() -> list[Group]:
    """The memory groups that memfit itself is in, and with it a run that has none of its own."""
    paths = (own_group(version=version) for version in (1, 2))
    groups = [Group(path) for path in paths if path is not None]
    return [group for group in groups if group.counts]
