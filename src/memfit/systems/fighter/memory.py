"""How much memory this program and its workers have taken, as the kernel says."""

from __future__ import annotations

import multiprocessing
import resource
from pathlib import Path


def peak_of_tree() -> tuple[int, list[int]]:
    """The highest resident size of this process, and that of each of its workers."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    workers = [high_water(child.pid) for child in multiprocessing.active_children() if child.pid]
    return own, workers


def high_water(pid: int) -> int:
    """The highest resident size of a process; 0 if it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0
