"""A control group with a memory limit for one run, where the system lets us make one."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from memfit.measure.kernel.limits import own_group
from memfit.measure.kernel.proc import figure, text


class Group:
    """A group with a hard limit; the kernel ends what goes above it, and nothing else."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, pid: int) -> bool:
        """Put a process, and all that it will start, into the group."""
        return _write(self.path / "cgroup.procs", str(pid))

    def killed(self) -> int:
        """How many processes of the group the kernel has ended for want of memory."""
        files = (self.path / "memory.events", self.path / "memory.oom_control")
        return max(figure(file, "oom_kill ") or 0 for file in files)

    def remove(self) -> None:
        """Remove it; its processes have ended, or go back to where they were started."""
        for pid in text(self.path / "cgroup.procs").split():
            _write(self.path.parent / "cgroup.procs", pid)
        with contextlib.suppress(OSError):
            self.path.rmdir()


def make_group(limit: int) -> Group | None:
    """A group below our own with this limit, or None where the system does not permit it."""
    for version, name in ((2, "memory.max"), (1, "memory.limit_in_bytes")):
        parent = own_group(version=version)
        if parent is None:
            continue
        group = Group(parent / f"memfit-{os.getpid()}")
        try:
            group.path.mkdir()
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
