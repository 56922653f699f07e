"""Reads a process's mappings, heap and arrays in one moment, as nearly as that can be done."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from memfit.measure.kernel import proc
from memfit.measure.kernel.mappings import Mapping, apart, mappings, nameless
from memfit.measure.kernel.process_memory import ProcessMemory, Span
from memfit.measure.live.heap import HeapCopy, copy_main
from memfit.measure.live.mapping_layers import Layers, spans_of
from memfit.measure.live.numpy_arrays import data_of_arrays
from memfit.measure.live.threads import threads
from memfit.model import Layer

_MORE_TRIES = 2
_SAME = 0.005  # two ways of summing may differ by so much, else the process changed meanwhile


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The mappings of a process with their sum, and where wanted what pointers lead through."""

    maps: Sequence[Mapping]
    total: proc.Rollup
    moved: int  # bytes that came or went while it was read
    heap: HeapCopy | None
    arrays: NDArray[np.uint64] | None  # where arrays say that their numbers are, if wanted


def settled(
    pid: int, memory: ProcessMemory, numbers: Sequence[Span] | None, until: float = inf
) -> Snapshot | None:
    """The snapshot in which the least came and went; the first that is good enough.

    With heap and arrays where `numbers` are given: places that need not be read. None of what has
    ended. After `until` it is not read again.
    """
    objects: Sequence[Span] = ()
    if numbers is not None:  # where they lie changes little, and takes long to find
        maps = mappings(pid)
        parts = Layers(maps, threads(pid, maps, memory), memory).parts()
        objects = spans_of(parts, Layer.OBJECTS) or spans_of(parts, Layer.HEAP)
    best: Snapshot | None = None
    for _ in range(1 + _MORE_TRIES):
        maps = mappings(pid)
        total = proc.rollup(pid)
        if not maps or total is None:
            return None
        heap = arrays = None
        moved = abs(total.pss - sum(m.pss for m in maps))
        if numbers is not None:
            heap = copy_main(maps, memory, numbers)
            arrays = data_of_arrays(objects, maps, memory)
            moved += apart([(m.start, m.end) for m in maps if m.nameless], nameless(pid))
        if best is None or moved < best.moved:
            best = Snapshot(maps=maps, total=total, moved=moved, heap=heap, arrays=arrays)
        if best.moved <= _SAME * best.total.pss or time.monotonic() > until:
            break
    return best
