"""Which lines allocate what stays, by tracemalloc: in a run of its own, which gives no verdict."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

from memfit.model.profile import Site

_MOST = 15
_OURS = str(Path(__file__).resolve().parents[2])
Sums = dict[tuple[str, int], tuple[int, int]]


def sums() -> Sums:
    """What is allocated now, by line; the snapshot itself is not kept."""
    gc.collect()
    snapshot = tracemalloc.take_snapshot()
    return {
        (one.traceback[0].filename, one.traceback[0].lineno): (one.size, one.count)
        for one in snapshot.statistics("lineno")
        if not _is_ours(one.traceback[0].filename)
    }


def grown_since(before: Sums) -> tuple[Site, ...]:
    """The lines that hold more than then, the most first."""
    grown = []
    for at, (size, count) in sums().items():
        size_then, count_then = before.get(at, (0, 0))
        if size > size_then:
            grown.append((size - size_then, count - count_then, at))
    return tuple(
        Site(where=f"{file}:{line}", bytes=size, count=count)
        for size, count, (file, line) in sorted(grown, reverse=True)[:_MOST]
    )


def _is_ours(file: str) -> bool:
    return file == tracemalloc.__file__ or (
        file.startswith(_OURS) and not file.startswith(f"{_OURS}/systems")
    )
