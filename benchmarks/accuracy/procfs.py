"""Memory of a process tree, read from procfs alone."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

_PAGE = os.sysconf("SC_PAGE_SIZE")
_FIELDS = {b"Rss:": "rss", b"Pss:": "pss", b"Pss_Anon:": "anon", b"Pss_File:": "file"}


@dataclass(frozen=True)
class Memory:
    """What one process holds, in bytes."""

    rss: int = 0
    pss: int = 0
    anon: int = 0
    file: int = 0

    def __add__(self, other: Memory) -> Memory:
        return Memory(
            self.rss + other.rss,
            self.pss + other.pss,
            self.anon + other.anon,
            self.file + other.file,
        )


def memory(pid: int) -> Memory | None:
    """Read the memory of a process, or None when it is gone.

    The file is opened anew each time, for an open one stays with the address space that the
    process had then: with that of its parent, if it was opened between vfork and exec.
    """
    values = {}
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb", buffering=0) as file:
            for line in file.read().splitlines():
                words = line.split()
                if words and words[0] in _FIELDS:
                    values[_FIELDS[words[0]]] = int(words[1]) * 1024
    except OSError:
        return None
    return Memory(**values) if values else None


def resident(pid: int) -> int:
    """Return the resident size of a process, which is cheap to read, or 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def descendants(pid: int) -> list[int]:
    """List the processes below one, nearest first, without itself."""
    found: list[int] = []
    queue = [pid]
    while queue:
        parent = queue.pop(0)
        for child in _children(parent):
            if child not in found:
                found.append(child)
                queue.append(child)
    return found


def _children(pid: int) -> list[int]:
    children: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as file:
                children += [int(word) for word in file.read().split()]
    return children


def high_water(pid: int) -> int:
    """Return ``VmHWM``, the highest resident size that a process had, or 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/status") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
