"""Copies of malloc's heaps, taken from outside, and the blocks in them.

malloc's blocks lie one after the other, each with its size before it, so that all can be listed
from a copy.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from memfit.measure.kernel.mappings import Mapping
from memfit.measure.kernel.proc import PAGE
from memfit.measure.kernel.process_memory import ProcessMemory, Span, stretches

Words = NDArray[np.uint64]
Indices = NDArray[np.int64]

HEAD, FLAGS = 16, 7  # before each block; bits of its size that say something else
_LEAST_BLOCK, _BEFORE_IN_USE = 32, 1
_LARGEST_HEAP = 2**30  # a copy of it is made, and several times as much is worked with
_AT_ONCE = 1 << 16  # blocks that are listed without a look at the time
_SMALL_WORDS = 1024  # of a block: many of such a size are taken together
_CHAIN = 64  # so many blocks do not follow one another by chance


class TooLong(Exception):
    """To follow pointers takes longer than there is time for."""


def check(until: float) -> None:
    """Raise TooLong when the time is over."""
    if time.monotonic() > until:
        raise TooLong


@dataclass(frozen=True, kw_only=True)
class HeapCopy:
    """A heap at one moment."""

    start: int
    words: Words
    there: NDArray[np.bool_]  # its pages that are in memory

    def resident(self, offsets: Indices, sizes: Indices) -> Indices:
        """How much of each of these stretches is in memory."""
        before = np.concatenate([[0], np.cumsum(self.there)]) * PAGE
        edges = np.arange(len(before)) * PAGE
        ends, begins = (np.interp(at, edges, before) for at in (offsets + sizes, offsets))
        return np.asarray(ends - begins, dtype=np.int64)


def copy_main(
    maps: Sequence[Mapping], memory: ProcessMemory, numbers: Sequence[Span] = ()
) -> HeapCopy | None:
    """The main heap; nothing where there is none, or where it cannot be read or is too large.

    Pages that are known to hold `numbers` alone are left out.
    """
    # Several mappings where parts of it were asked to be of huge pages; one after the other.
    edges = [edge for m in maps if m.path == "[heap]" for edge in (m.start, m.end)]
    span = min(edges, default=0), max(edges, default=0)
    if not 0 < span[1] - span[0] <= _LARGEST_HEAP or not memory.readable:
        return None
    return copy_of(span, memory, numbers)


def copy_of(span: Span, memory: ProcessMemory, numbers: Sequence[Span] = ()) -> HeapCopy:
    """A copy of some memory; what is not in memory reads as zeros, and is not made by reading."""
    start, end = span
    there = np.zeros((end - start) // PAGE, dtype=bool)
    for a, b in memory.present(start, end):
        there[(a - start) // PAGE : (b - start) // PAGE] = True
    wanted = there.copy()
    for a, b in numbers:
        if start <= a and b <= end:
            wanted[-((start - a) // PAGE) : (b - start) // PAGE] = False
    words = np.zeros((end - start) // 8, dtype=np.uint64)
    for a, b in stretches(wanted):
        memory.read_into(words[a * PAGE // 8 : b * PAGE // 8], start + a * PAGE)
    return HeapCopy(start=start, words=words, there=there)


class HeapBlocks:
    """The blocks of a heap, by address. Raises TooLong where they are too many for the time."""

    def __init__(self, start: int, words: Words, until: float = inf) -> None:
        self.start = start
        self.words = words
        edges = _walk(words, until)
        self.offsets = np.array(edges, dtype=np.int64)
        self.count = max(0, len(edges) - 1)
        self.sizes = np.diff(self.offsets)
        # Whether a block is in use stands in the next one's head; the last is what is left.
        self.in_use = np.zeros(self.count, dtype=bool)
        heads = words[self.offsets[1:-1] // 8 + 1] if self.count > 1 else words[:0]
        self.in_use[: len(heads)] = (heads & np.uint64(_BEFORE_IN_USE)) != 0

    def pointed_to(self, words: Words) -> Indices:
        """The blocks into which some of these words point."""
        return np.unique(self._targets(words)[1])

    def words_of(self, blocks: Indices) -> Words:
        """All words of these blocks."""
        return self.words[_each(self.offsets[blocks] // 8, self.offsets[blocks + 1] // 8)]

    def blank(self, blocks: Indices) -> None:
        """What these blocks say is of no account; their heads stay."""
        begins, ends = self.offsets[blocks] // 8 + HEAD // 8, self.offsets[blocks + 1] // 8
        small = ends - begins <= _SMALL_WORDS
        self.words[_each(begins[small], ends[small])] = 0
        for a, b in zip(begins[~small].tolist(), ends[~small].tolist(), strict=True):
            self.words[a:b] = 0

    def pointers(self) -> tuple[Indices, Indices]:
        """All pointers between blocks: where those of each begin, and where they lead."""
        at, to = self._targets(self.words)
        of = np.searchsorted(self.offsets, at * 8, side="right") - 1
        order = np.argsort(of, kind="stable")
        first = np.searchsorted(of[order], np.arange(self.count + 1))
        return first, to[order]

    def _targets(self, words: Words) -> tuple[Indices, Indices]:
        low, high = self.start + HEAD, self.start + int(self.offsets[-1])
        at = np.flatnonzero((words >= np.uint64(low)) & (words < np.uint64(high)))
        offsets = (words[at] - np.uint64(low)).astype(np.int64)
        to = np.searchsorted(self.offsets, offsets, side="right") - 1
        # malloc's own lists of free blocks point to heads: to the end of the block before.
        held = offsets + HEAD != self.offsets[to + 1]
        return at[held], to[held]


def _each(begins: Indices, ends: Indices) -> Indices:
    """All numbers from each of these begins up to its end."""
    counts = np.maximum(ends - begins, 0)
    before = np.cumsum(counts) - counts
    return np.repeat(begins - before, counts) + np.arange(int(counts.sum()))


def _walk(words: Words, until: float) -> list[int]:
    """The offset of each block, and the end of the last.

    The process goes on while its heap is copied, so that a size here and there makes no sense: the
    walk then goes on from the next place from which many blocks follow one another.
    """
    view = memoryview(words)  # type: ignore[arg-type]
    end, offset = 8 * len(words), 0
    found: list[int] = []
    while offset + HEAD <= end:
        check(until)
        for _ in range(_AT_ONCE):
            found.append(offset)
            size = view[(offset >> 3) + 1] & ~FLAGS
            if _LEAST_BLOCK <= size <= end - offset and not size & HEAD - 1:
                offset += size
            else:
                offset = _next_chain(words, view, offset + HEAD)
            if offset + HEAD > end:
                break
    found.append(end)
    return found


def _next_chain(words: Words, view: memoryview[int], offset: int) -> int:
    end, piece = 8 * len(words), 1 << 20
    for begin in range(offset, end - HEAD, piece):
        heads = words[begin // 8 + 1 : (begin + piece) // 8 + 1 : 2]
        sizes = heads & np.uint64(2**64 - 1 - FLAGS)
        likely = (sizes >= _LEAST_BLOCK) & (sizes <= end - begin) & (sizes % HEAD == 0)
        for at in np.flatnonzero(likely).tolist():
            if _is_chain(view, begin + HEAD * at, end):
                return begin + HEAD * at
    return end


def _is_chain(view: memoryview[int], at: int, end: int) -> bool:
    """Whether many blocks follow one another from here, or all up to the end."""
    for _ in range(_CHAIN):
        if at + HEAD > end:
            break
        size = view[at // 8 + 1] & ~FLAGS
        if not _LEAST_BLOCK <= size <= end - at or size % HEAD:
            return False
        at += size
    else:
        return True
    return at == end
