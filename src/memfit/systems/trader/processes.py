"""The memory of processes as the kernel tells it, and how they end together."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

PROC = Path("/proc")
_PR_SET_PDEATHSIG = 1
_M_MMAP_THRESHOLD = -3
_LARGE = 1 << 20
_NO_LIMIT = 2**60
_FIELDS = (b"Rss", b"Anonymous", b"Pss_Anon", b"Pss_Shmem", b"Private_Dirty")


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Memory of processes: their own, and the files that they map and share with any other.

    `private` is proportional (PSS), so that pages which processes of one tree share count once.
    Pages of libraries and other files count as the process with most of them has them: a second
    training maps the same ones.
    """

    private: int = 0
    files: int = 0

    @property
    def total(self) -> int:
        return self.private + self.files


@dataclass(frozen=True, kw_only=True)
class Reading(Memory):
    """Memory of one process; `own` is what it holds that no other does."""

    own: int = 0


def together(readings: Iterable[Memory]) -> Memory:
    """What processes hold together."""
    each = list(readings)
    return Memory(
        private=sum(one.private for one in each), files=max((one.files for one in each), default=0)
    )


def memory_of(pids: Iterable[int]) -> Memory:
    """What these processes hold together; one that is gone holds nothing."""
    return together(reading(pid) for pid in pids)


def reading(pid: int) -> Reading:
    """What one process holds."""
    read = _rollup(pid)
    shared = read["Pss_Shmem"]
    return Reading(
        private=read["Pss_Anon"] + shared,
        files=max(0, read["Rss"] - read["Anonymous"] - shared),
        own=read["Private_Dirty"],
    )


def _rollup(pid: int) -> dict[str, int]:
    found = {name.decode(): 0 for name in _FIELDS}
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                name, _, rest = line.partition(b":")
                if name in _FIELDS:
                    found[name.decode()] = int(rest.split()[0]) * 1024
    except (OSError, ValueError):
        pass
    return found


def tree(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for parent in found:  # grows while it is gone through
        try:
            threads = os.listdir(f"/proc/{parent}/task")
        except OSError:
            continue
        for thread in threads:
            with contextlib.suppress(OSError, ValueError):
                text = (PROC / str(parent) / "task" / thread / "children").read_text()
                found.extend(int(child) for child in text.split())
    return found


def tree_memory(pid: int) -> Memory:
    """What a process and all below it hold together."""
    return memory_of(tree(pid))


def status(field: str, pid: int | str = "self") -> int:
    """A field of a process's status: bytes, or a count; 0 where it is gone."""
    with contextlib.suppress(OSError, ValueError):
        for line in (PROC / str(pid) / "status").read_text().splitlines():
            if line.startswith(field + ":"):
                words = line.split()
                return int(words[1]) * (1024 if words[-1] == "kB" else 1)
    return 0


def return_large_blocks() -> None:
    """Have the C library give every large block back to the system as soon as it is freed.

    By itself it comes to keep freed blocks of up to 32 MiB in its heap, with gaps between them: a
    training then holds about twice the tensors that are alive at once.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)


def give_back() -> None:
    """Give free blocks of the heap back to the system, where the C library can."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def end_with_parent(parent: int) -> None:
    """Have the kernel end this process when the one that started it ends, however it does."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it was already gone
        os._exit(1)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process that was started with a group of its own, and everything in that group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def machine_limit() -> int:
    """What this process may use at most, as things are: cgroups, and memory that is free."""
    limits = [_meminfo("MemTotal"), _meminfo("MemAvailable")]
    for group in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            limits.append(int(Path(group).read_text()))
    with contextlib.suppress(OSError, ValueError):
        for line in (PROC / "self" / "cgroup").read_text().splitlines():
            path = line.split(":", 2)[2].lstrip("/")
            limits.append(int((Path("/sys/fs/cgroup") / path / "memory.max").read_text()))
    return min((limit for limit in limits if 0 < limit < _NO_LIMIT), default=0)


def _meminfo(field: str) -> int:
    with contextlib.suppress(OSError):
        for line in (PROC / "meminfo").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    return 0


def end_workers(workers: Iterable[tuple[BaseProcess, Connection]]) -> None:
    """End processes that serve through pipes, and wait until they are gone."""
    each = list(workers)
    for process, pipe in each:
        process.kill()
        pipe.close()
    for process, _ in each:
        process.join()
        process.close()
