"""Read what the kernel says about processes, without disturbing them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, kw_only=True)
class Rollup:
    """One process's memory in bytes, from `smaps_rollup`."""

    rss: int
    pss: int
    pss_anon: int
    pss_shmem: int
    anonymous: int
    private_dirty: int

    @property
    def files(self) -> int:
        """Resident pages of mapped files, whoever else maps them."""
        return max(0, self.rss - self.anonymous - self.pss_shmem)


_FIELDS = {
    b"Rss": "rss",
    b"Pss": "pss",
    b"Pss_Anon": "pss_anon",
    b"Pss_Shmem": "pss_shmem",
    b"Anonymous": "anonymous",
    b"Private_Dirty": "private_dirty",
}


def rollup(pid: int | str = "self") -> Rollup | None:
    """A process's memory, or None where it is gone or not ours."""
    found = dict.fromkeys(_FIELDS.values(), 0)
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                name, _, rest = line.partition(b":")
                if name in _FIELDS:
                    found[_FIELDS[name]] = int(rest.split()[0]) * 1024
    except (OSError, ValueError):
        return None
    return Rollup(**found)


def stat(pid: int) -> list[str]:
    """The words of /proc/PID/stat after the name, which may itself contain anything."""
    with open(f"/proc/{pid}/stat", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def resident(pid: int) -> int:
    """What a process has in memory, as the kernel keeps it ready; 0 where it is gone."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * PAGE
    except (OSError, IndexError, ValueError):
        return 0


def threads(pid: int) -> int:
    """How many threads a process has; 0 where it is gone."""
    try:
        return int(stat(pid)[17])
    except (OSError, IndexError, ValueError):
        return 0


def own_bytes() -> int:
    """The resident bytes of this process alone."""
    own = rollup()
    return own.rss if own is not None else 0


def children(pid: int) -> list[int]:
    """The direct children of a process."""
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for thread in threads:
        try:
            text = (PROC / str(pid) / "task" / thread / "children").read_text()
        except OSError:
            continue
        found.extend(int(child) for child in text.split())
    return found


def descendants(pid: int) -> list[int]:
    """All processes below one, nearest first."""
    found: list[int] = []
    queue = children(pid)
    while queue:
        child = queue.pop(0)
        if child not in found:
            found.append(child)
            queue.extend(children(child))
    return found


def tree_bytes(pid: int) -> int:
    """The memory of a process and all below it, shared pages counted once.

    This is the tree's PSS as it is when nobody else maps the same libraries: a training that
    happens to run beside the plan would otherwise halve what torch costs. Private and shared
    anonymous pages count by PSS, which only the tree itself shares; pages of files count as the
    largest process has them.
    """
    readings = [r for p in (pid, *descendants(pid)) if (r := rollup(p)) is not None]
    if not readings:
        return 0
    return sum(r.pss_anon + r.pss_shmem for r in readings) + max(r.files for r in readings)


def tree_pss(pid: int) -> int:
    """The sum of PSS over a process and all below it."""
    return sum(r.pss for p in (pid, *descendants(pid)) if (r := rollup(p)) is not None)


def marked(variable: str, value: str) -> list[int]:
    """Every process whose environment carries `variable=value`: finds what left its group."""
    wanted = f"{variable}={value}".encode()
    found: list[int] = []
    for entry in _numbers(os.listdir(PROC)):
        try:
            environ = (PROC / str(entry) / "environ").read_bytes()
        except OSError:
            continue
        if wanted in environ.split(b"\0"):
            found.append(entry)
    return found


def _numbers(names: Iterable[str]) -> Iterable[int]:
    return (int(name) for name in names if name.isdigit())


class PeakMeter:
    """The peak of this process's own memory between two points, kept by the kernel.

    The kernel's high-water mark of RSS is reset on `start` and read on `peak`, so that no spike is
    missed however short.
    Where the mark cannot be reset, `peak` is the present value.
    """

    def __init__(self) -> None:
        self.exact = True

    def start(self) -> None:
        try:
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")
        except OSError:
            self.exact = False

    def now(self) -> int:
        return tree_bytes(os.getpid())

    def own_peak(self) -> int:
        """The peak of this process's RSS since `start`."""
        return _status("VmHWM" if self.exact else "VmRSS")

    def peak(self) -> int:
        """The peak since `start`, of this process and its children as they are now."""
        mark = _status("VmHWM")
        own = rollup()
        total = self.now()
        if own is None or not self.exact:
            return total
        return total + max(0, mark - own.rss)


def high_water(pid: int) -> int:
    """The most that a process has held, as the kernel remembers it; 0 where it is gone."""
    try:
        return _status("VmHWM", pid)
    except (OSError, ValueError):
        return 0


def _status(field: str, pid: int | str = "self") -> int:
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    return 0
