"""Targets of a run beside what it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memfit.model import Target, Targets, Watched
from memfit.units import format_bytes


def judge(targets: Targets, processes: Sequence[Watched], total: int) -> Iterator[Target]:
    """Each target that was asked for, met or missed by the worst process."""
    most = max((p.bytes for p in processes), default=0)
    threads = max((p.threads for p in processes), default=0)
    for name, wanted, found, shown in (
        ("RAM per process", targets.process_bytes, most, format_bytes),
        ("threads per process", targets.process_threads, threads, str),
        ("RAM in total", targets.total_bytes, total, format_bytes),
    ):
        if wanted is not None:
            yield Target(name=name, wanted=shown(wanted), found=shown(found), met=found <= wanted)
