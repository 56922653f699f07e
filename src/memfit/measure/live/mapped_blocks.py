"""Finds large blocks that malloc mapped on their own, by the pointers that lead to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from memfit.measure.kernel.mappings import Mapping
from memfit.measure.kernel.proc import PAGE
from memfit.measure.kernel.process_memory import ProcessMemory, Span
from memfit.measure.live.heap import FLAGS, HEAD, Words
from memfit.measure.live.outside_walk.memory_copy import Flags, MemoryCopy
from memfit.model import Native

_MOST_COPIED = 2**28
_MAPPED = 2  # the flag of such a block's size


class MappedBlocks:
    """The nameless mappings of a process, and the blocks in them."""

    def __init__(self, maps: Sequence[Mapping], memory: ProcessMemory) -> None:
        self._maps = [m for m in maps if m.nameless and m.writable]
        self._memory = memory
        self._copy = MemoryCopy(self._maps, memory, _MOST_COPIED)
        self._seen: set[Span] = set()
        self._filled: dict[int, tuple[list[int], list[int]]] = {}
        self._starts = np.array([m.start for m in self._maps], dtype=np.uint64)
        self._ends = np.array([m.end for m in self._maps], dtype=np.uint64)
        # Where the mappings end that follow each without a gap.
        last = np.append(self._ends[:-1] != self._starts[1:], True)[: len(self._maps)]
        ends = np.flatnonzero(last)
        self._until = self._ends[ends[np.searchsorted(ends, np.arange(len(last)))]].tolist()

    def pointed_to(self, words: Words) -> Iterator[tuple[int, int, int]]:
        """Each block to which some of these words point: its place, size and what is resident.

        None comes twice, whatever words are given later.
        """
        at = np.searchsorted(self._starts, words, side="right") - 1
        inside = at >= 0
        inside[inside] = words[inside] < self._ends[at[inside]]
        words, at = words[inside], at[inside]
        likely = self._may_begin(words, self._starts[at])
        words, at = words[likely], at[likely]
        for word, i in sorted(set(zip(words.tolist(), at.tolist(), strict=True))):
            page = word & -PAGE
            # Numbers begin behind the head; or, where their holder aligned them, near it.
            for head in (word - HEAD, page) if page + HEAD < word else (word - HEAD,):
                block = self._with_head(head, i)
                if block is not None:
                    if block not in self._seen:
                        self._seen.add(block)
                        yield block[0], block[1] - block[0], self._resident(block, i)
                    break

    def _may_begin(self, words: Words, starts: Words) -> Flags:
        """Which of these may be where a block begins, told for many at once.

        Most lead to Python's small objects.
        """
        page, head = np.uint64(PAGE), np.uint64(HEAD)
        likely = np.zeros(len(words), dtype=bool)
        for heads in (words - head, words & ~(page - np.uint64(1))):
            said = self._copy.words(heads, 2)
            first, last = heads - said[:, 0], heads + (said[:, 1] & ~np.uint64(FLAGS))
            mapped = (said[:, 1] & np.uint64(_MAPPED) != 0) & (first % page == 0)
            gone = (said[:, 1] == 0) & (heads - starts < page)
            likely |= (mapped & (last % page == 0)) | gone
        return likely

    def _with_head(self, head: int, i: int) -> Span | None:
        """The block that has its head here, if there is one."""
        mapping, until = self._maps[i], self._until[i]
        if not mapping.holds(head):
            return None
        # The head says what was left out before it to align the numbers, and the size.
        gone = not self._memory.resident(head, head + HEAD)
        said = np.frombuffer(b"" if gone else self._memory.read(head, HEAD), dtype=np.uint64)
        if len(said) == 2 and int(said[1]) & _MAPPED:
            start, end = head - int(said[0]), head + (int(said[1]) & ~FLAGS)
        elif gone and head - mapping.start < PAGE:  # given back by now: it was all of it
            first_page = mapping.reserved == PAGE and until > mapping.end
            start, end = mapping.start, self._maps[i + first_page].end
        else:
            return None
        whole = start % PAGE == 0 and end % PAGE == 0 and mapping.start <= start and end <= until
        return (start, end) if whole and end - start >= Native.LEAST_NUMBERS else None

    def _resident(self, block: Span, i: int) -> int:
        """What was resident of a block when its mappings were listed.

        There may be several: the first page may not become part of a huge one, for instance.
        """
        start, end = block
        total = 0
        while i < len(self._maps) and (mapping := self._maps[i]).start < end:
            a, b = max(start, mapping.start), min(end, mapping.end)
            # It may have been filled or left since: its share of what is there now.
            whole, part = self._there(i, mapping.start, mapping.end), self._there(i, a, b)
            total += round(mapping.rss * (part / whole if whole else (b - a) / mapping.reserved))
            i += 1
        return total

    def _there(self, i: int, start: int, end: int) -> float:
        """How much is in memory between two addresses of a mapping, which is read once."""
        if i not in self._filled:
            edges, before = [self._maps[i].start], [0]
            for a, b in self._memory.present(self._maps[i].start, self._maps[i].end):
                edges += a, b
                before += before[-1], before[-1] + b - a
            self._filled[i] = edges, before
        low, high = np.interp((start, end), *self._filled[i])
        return float(high - low)
