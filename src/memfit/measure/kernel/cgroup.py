"""A control group with a memory limit for one run, where the system lets us make one."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from memfit.measure.kernel.limits import own_group
from memfit.measure.kernel.proc import figure, text

_ENDING_SECONDS = 2.0  # a process that was killed takes a moment to leave its group


class Group:
    """A group with a hard limit; the kernel ends what goes above it, and nothing else."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def killed(self) -> int:
        """How many processes of the group the kernel has ended for want of memory."""
        return max(self._counts(), default=0)

    @property
    def counts(self) -> bool:
        """Whether the kernel counts these: not for the group that is above all others."""
        return bool(self._counts())

    def _counts(self) -> list[int]:
        files = (self.path / "memory.events", self.path / "memory.oom_control")
        found = (figure(file, "oom_kill ") for file in files)
        return [count for count in found if count is not None]

    def end_if_killed(self) -> None:
        """Where the kernel has ended a process of the group, end all others too.

        One that waits for a disk, or is another user's, may stay: it is not waited for.
        """
        until = time.monotonic() + _ENDING_SECONDS
        while self.killed() and (pids := text(self.path / "cgroup.procs").split()):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(int(pid), signal.SIGKILL)
            if time.monotonic() > until:
                return
            time.sleep(0.01)

    def remove(self) -> None:
        """Remove it; its processes have ended, or go back to where they were started."""
        until = time.monotonic() + _ENDING_SECONDS
        while self.path.exists():
            for pid in text(self.path / "cgroup.procs").split():
                _write(self.path.parent / "cgroup.procs", pid)
            with contextlib.suppress(OSError):
                self.path.rmdir()
                return
            if time.monotonic() > until:
                return
            time.sleep(0.01)


@contextlib.contextmanager
def memory_group(limit: int | None) -> Iterator[Group | None]:
    """A group below our own with this limit; None without one, or where it is not permitted."""
    group = None if limit is None else _make(limit)
    try:
        yield group
    finally:
        if group is not None:
            group.remove()


def _make(limit: int) -> Group | None:
    for version, name in ((2, "memory.max"), (1, "memory.limit_in_bytes")):
        parent = own_group(version=version)
        if parent is None:
            continue
        try:
            group = Group(Path(tempfile.mkdtemp(prefix=f"memfit-{os.getpid()}-", dir=parent)))
        except OSError:
            continue
        if (group.path / name).exists() and _write(group.path / name, str(limit)):
            return group
        group.remove()
    return None


def _write(file: Path, value: str) -> bool:
    try:
        file.write_text(value)
    except OSError:
        return False
    return True
