"""How much memory a process tree holds now, and the most that its processes have held."""

from __future__ import annotations

import os

from memfit.measure.kernel import proc


def tree_bytes(pid: int | None = None) -> int:
    """What a process and all below it hold now, as the sum of PSS; this process by default."""
    return proc.tree_memory(os.getpid() if pid is None else pid).pss


def peak_bytes(pid: int | None = None) -> int:
    """The most that one process alone has held, as the kernel remembers it; 0 where it is gone.

    This is resident memory (RSS): what processes share is in the peak of each, so peaks of several
    are not to be added.
    """
    return proc.high_water(os.getpid() if pid is None else pid)


def peaks_below(pid: int | None = None) -> list[int]:
    """`peak_bytes` of each process below one that still runs, nearest first."""
    return [peak_bytes(child) for child in proc.descendants(os.getpid() if pid is None else pid)]
