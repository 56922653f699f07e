"""Which lines allocate what stays: in a run of its own, which gives no verdict.

memray sees what C and C++ ask for as well; where it is not installed, tracemalloc sees what Python
and numpy do.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from memfit.inside.module_owners import is_run_file
from memfit.model.profile import Site

_MOST, _DEEP = 15, 12  # lines that are told, and calls that are looked through for one's own
_RECORD = "allocations"
_OURS = str(Path(__file__).resolve().parents[2])
At = tuple[str, int]
Found = tuple[list[At], int, int]  # lines from the innermost one on, bytes, blocks


class Recording:
    """Allocations from now on, until the lines are asked for whose memory is still there."""

    def __init__(self, scratch: Path) -> None:
        self.file = scratch / _RECORD
        self.tracker: Any = None
        gc.collect()
        try:
            from memray import FileDestination, FileFormat, Tracker
        except ImportError:
            tracemalloc.start(_DEEP)
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
        sizes, counts = Counter[tuple[At, At]](), Counter[tuple[At, At]]()
        for stack, size, count in found:
            ends = _own(stack), stack[0]
            sizes[ends] += size
            counts[ends] += count
        return tuple(
            Site(
                where=f"{own[0]}:{own[1]}",
                bytes=size,
                count=counts[own, last],
                by="" if own == last else f"{last[0]}:{last[1]}",
            )
            for (own, last), size in sizes.most_common(_MOST)
        )

    def _by_tracemalloc(self) -> list[Found]:
        snapshot = tracemalloc.take_snapshot()
        tracemalloc.stop()
        return [
            (stack, one.size, one.count)
            for one in snapshot.statistics("traceback")
            if (stack := [(f.filename, f.lineno) for f in reversed(one.traceback)])
            and not _is_ours(stack[0][0])
        ]

    def _by_memray(self) -> list[Found]:
        from memray import FileReader

        self.tracker.__exit__(None, None, None)
        with closing(FileReader(self.file)) as reader:
            return [
                (stack, one.size, one.n_allocations)
                for one in reader.get_leaked_allocation_records(merge_threads=True)
                if (stack := [(file, line) for _, file, line in one.stack_trace(_DEEP)])
                and not _is_ours(stack[0][0])
            ]


def _own(stack: list[At]) -> At:
    """The innermost line that is of no library and not Python's; else the innermost one."""
    return next((at for at in stack if is_run_file(at[0]) and not _is_ours(at[0])), stack[0])


def _is_ours(file: str) -> bool:
    return file == tracemalloc.__file__ or (
        file.startswith(_OURS) and not file.startswith(f"{_OURS}/systems")
    )
