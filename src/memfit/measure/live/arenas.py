"""Attributes malloc's arenas to the thread pools that allocate in them.

A thread keeps the address of its arena among its own data, at the upper end of its stack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from memfit.measure.kernel.process_memory import ProcessMemory, Span
from memfit.measure.live.heap import HeapBlocks, copy_of
from memfit.measure.live.threads import Thread

_OWN_DATA = 64 * 1024  # of a thread, at most
_HEADER = 32  # of a heap: its arena, the heap before, its size, what of it may be written


def in_arenas(
    heaps: Sequence[Span], threads: Sequence[Thread], memory: ProcessMemory
) -> tuple[Mapping[str, int], int]:
    """What is resident in blocks in use, by the pool of the arena's threads; and what is free."""
    used: dict[str, int] = {}
    free = 0
    pools = _arenas_of(threads, memory)
    for span in heaps:
        heap = copy_of(span, memory)
        if len(heap.words) <= _HEADER // 8:
            continue
        # Behind the heap's own end there is what it has given back.
        end = min(int(heap.words[2]) // 8, len(heap.words))
        blocks = HeapBlocks(heap.start + _HEADER, heap.words[_HEADER // 8 : end])
        resident = heap.resident(blocks.offsets[:-1] + _HEADER, blocks.sizes)
        pool = pools.get(int(heap.words[0]), "")
        if pool:
            used[pool] = used.get(pool, 0) + int(np.sum(resident[blocks.in_use]))
        free += int(np.sum(resident[~blocks.in_use]))
    return used, free


def _arenas_of(threads: Sequence[Thread], memory: ProcessMemory) -> Mapping[int, str]:
    """The pool of the threads that keep each word: among them, the addresses of arenas."""
    found: dict[int, str] = {}
    for thread in threads:
        if thread.stack is not None:
            low, high = thread.stack
            own = copy_of((max(low, high - _OWN_DATA), high), memory).words
            found.update(dict.fromkeys(own[own > 0].tolist(), thread.pool))
    return found
