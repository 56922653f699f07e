"""Which lines allocate what stays: in a run of its own, which gives no verdict.

memray sees what C and C++ ask for as well; where it is not installed, tracemalloc sees what Python
and numpy do.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

from memfit.model.profile import Site

_MOST = 15
_RECORD = "allocations"
_OURS = str(Path(__file__).resolve().parents[2])
At = tuple[str, int]


class Recording:
    """Allocations from now on, until the lines are asked for whose memory is still there."""

    def __init__(self, scratch: Path) -> None:
        self.file = scratch / _RECORD
        self.tracker: Any = None
        gc.collect()
        try:
            from memray import FileDestination, FileFormat, Tracker
        except ImportError:
            tracemalloc.start()
            return
        self.tracker = Tracker(
            destination=FileDestination(self.file, overwrite=True, compress_on_exit=False),
            file_format=FileFormat.AGGREGATED_ALLOCATIONS,
            trace_python_allocators=True,
        )
        self.tracker.__enter__()

    def sites(self) -> tuple[Site, ...]:
        """The lines, the most first."""
        gc.collect()
        found = self._by_tracemalloc() if self.tracker is None else self._by_memray()
        sizes, counts = Counter[At](), Counter[At]()
        for at, size, count in found:
            sizes[at] += size
            counts[at] += count
        return tuple(
            Site(where=f"{file}:{line}", bytes=size, count=counts[file, line])
            for (file, line), size in sizes.most_common(_MOST)
        )

    def _by_tracemalloc(self) -> list[tuple[At, int, int]]:
        snapshot = tracemalloc.take_snapshot()
        tracemalloc.stop()
        return [
            ((one.traceback[0].filename, one.traceback[0].lineno), one.size, one.count)
            for one in snapshot.statistics("lineno")
            if not _is_ours(one.traceback[0].filename)
        ]

    def _by_memray(self) -> list[tuple[At, int, int]]:
        from memray import FileReader

        self.tracker.__exit__(None, None, None)
        found = []
        with FileReader(self.file) as reader:
            for one in reader.get_leaked_allocation_records(merge_threads=True):
                lines = one.stack_trace(1)
                if lines and not _is_ours(lines[0][1]):
                    found.append(((lines[0][1], lines[0][2]), one.size, one.n_allocations))
        return found


def _is_ours(file: str) -> bool:
    return file == tracemalloc.__file__ or (
        file.startswith(_OURS) and not file.startswith(f"{_OURS}/systems")
    )
