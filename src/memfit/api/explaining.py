"""`explain`: where the memory of a live process tree goes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from memfit.analyses import layers
from memfit.errors import UsageError
from memfit.measure import device, limits, tree
from memfit.model import Explanation, Limit, ProcessView

_LEAST_SECONDS = 0.2


def explain(
    pid: int,
    *,
    children: bool = True,
    seconds: float = 0.0,
    limit: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Explanation:
    """Explain the memory of a process and all below it, without touching them.

    With `seconds`, a second reading so much later tells what grew.
    """
    if pid <= 0:
        raise UsageError(f"{pid} is no process: give a PID, for instance from `pgrep -af python`")
    if seconds and not seconds >= _LEAST_SECONDS:
        raise UsageError(f"{seconds:g} seconds are too few to see growth: give 1 or more")
    started = time.monotonic()
    before = tree.read_tree(pid, children=children) if seconds else []
    if seconds:
        if progress is not None:
            progress(f"reading once more in {seconds:g} s")
        first = time.monotonic()
        time.sleep(seconds)
    processes = tree.read_tree(pid, children=children)
    took = time.monotonic() - first if seconds else 0.0
    return _explanation(
        pid, processes, before, took, limit=limit, seconds=time.monotonic() - started
    )


def _explanation(
    pid: int,
    processes: Sequence[ProcessView],
    before: Sequence[ProcessView],
    between: float,
    *,
    limit: int | None,
    seconds: float,
) -> Explanation:
    ledger = layers.tree_ledger(processes)
    growth = layers.grown(layers.tree_ledger(before), ledger, between) if before else ()
    return Explanation(
        pid=pid,
        processes=tuple(processes),
        ledger=ledger,
        pss_bytes=sum(p.pss for p in processes),
        named_share=layers.named_share(processes),
        limit=_limit(pid, limit),
        available_bytes=limits.available(),
        settings=layers.settings(processes[0], cores=os.cpu_count() or 1),
        device_bytes=device.used_by([p.pid for p in processes]),
        growth=growth,
        growth_seconds=between,
        seconds=seconds,
    )


def _limit(pid: int, limit: int | None) -> Limit:
    if limit is not None:
        return Limit(bytes=limit, source="--limit")
    return limits.memory_limit(pid=pid)
