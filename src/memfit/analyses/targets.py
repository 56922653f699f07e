"""Targets of a run beside what it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memfit.model import Target, Targets, Watched
from memfit.units import format_bytes


def judge(targets: Targets, processes: Sequence[Watched], total: int) -> Iterator[Target]:
    """Each target that was asked for, met or missed by the worst process."""
    most = max((p.bytes for p in processes), default=0)
    threads = max((p.threads for p in processes), default=0)
    if targets.process_bytes is not None:
        yield Target(
            name="RAM per process",
            wanted=format_bytes(targets.process_bytes),
            found=format_bytes(most),
            met=most <= targets.process_bytes,
        )
    if targets.process_threads is not None:
        yield Target(
            name="threads per process",
            wanted=str(targets.process_threads),
            found=str(threads),
            met=threads <= targets.process_threads,
        )
    if targets.total_bytes is not None:
        yield Target(
            name="RAM in total",
            wanted=format_bytes(targets.total_bytes),
            found=format_bytes(total),
            met=total <= targets.total_bytes,
        )
