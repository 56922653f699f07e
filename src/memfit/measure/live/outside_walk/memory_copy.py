"""A copy of another process's memory that is read as it is needed, many places at a time.

Pages are read in chunks, once, and only those that are there: to read another would make it. A
walk that asks for millions of words gets them out of the copy, without a call for each.
"""

from __future__ import annotations

import contextlib
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from memfit.measure.kernel.mappings import Mapping, listed
from memfit.measure.kernel.proc import PAGE
from memfit.measure.kernel.process_memory import ProcessMemory, Span, cut

Addresses = NDArray[np.uint64]
Words = NDArray[np.uint64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]

_BITS = 16  # of an address within a chunk
_CHUNK = 1 << _BITS
_WORDS = _CHUNK // 8
_LARGEST = 2**36  # a mapping beyond that is address space kept for something else
_MORE_MARKS = 2**27  # for 2 GiB that come while it is read
_LARGE_REGION = 2**32  # of which it is asked for each stretch anew
_MOST_AT_ONCE = 256  # chunks that one read brings, at most


class MemoryCopy:
    """Private memory of a process, by address; what cannot be read is zero."""

    def __init__(self, maps: Sequence[Mapping], memory: ProcessMemory, most_bytes: int) -> None:
        self._memory = memory
        self._regions_known: list[_Region] = []
        self._filled: dict[int, tuple[list[int], list[int]]] = {}  # by region: what is there
        self._slots = np.zeros(0, dtype=np.int32)
        self.mark_places = 0
        self._know(_Region(m.start, m.end, m.rss == m.reserved) for m in maps if _has_objects(m))
        # Places for marks, of which there may come to be more.
        self.most_marks = self.mark_places + _MORE_MARKS
        self._most = max(16, min(most_bytes, 8 * 2**30) // _CHUNK)
        self._copy: Words = np.zeros(
            self._most * _WORDS, dtype=np.uint64
        )  # takes memory as it is used
        self._again = False
        self._since = time.monotonic()
        self._byte_view = memoryview(self._copy.view(np.uint8))  # type: ignore[arg-type]
        self._word_view = memoryview(self._copy)  # type: ignore[arg-type]
        self._used = 0

    def _know(self, regions: Iterable[_Region]) -> None:
        """Take in regions, each with numbers for its chunks and for marks: one for 16 bytes."""
        chunks = len(self._slots)
        for region in regions:
            region.first_chunk, region.first_mark = chunks, self.mark_places
            chunks += region.chunks
            self.mark_places += (region.end - region.start) // 16
            self._regions_known.append(region)
        self._filled.clear()  # regions have other numbers now
        known = sorted(self._regions_known, key=lambda region: region.start)
        self._start_list = [region.start for region in known]
        self._end_list = [region.end for region in known]
        self._whole = [region.whole for region in known]
        self.starts = np.array(self._start_list, dtype=np.uint64)
        self.ends = np.array(self._end_list, dtype=np.uint64)
        # The number of an address's chunk is its upper bits and this; so it is with marks.
        self._shift_list = [r.first_chunk - (r.start >> _BITS) for r in known]
        self._shift = np.array(self._shift_list, dtype=np.int64)
        self._mark_shift_list = [r.first_mark - (r.start >> 4) for r in known]
        self._mark_shift = np.array(self._mark_shift_list, dtype=np.int64)
        self._slots = np.full(chunks, -1, dtype=np.int32)
        self._slot_view = memoryview(self._slots)  # type: ignore[arg-type]
        self._chunk_region = np.zeros(chunks, dtype=np.int64)
        for i, region in enumerate(known):
            self._chunk_region[region.first_chunk : region.first_chunk + region.chunks] = i

    def readable(self, addresses: Addresses, size: int = 16) -> Flags:
        """Which of these are places of so many bytes, where words begin."""
        _, there = self._regions(addresses, size)
        return there

    def room(self, addresses: Addresses) -> Indices:
        """How many bytes follow each address in its mapping; none where it cannot be read."""
        regions, there = self._regions(addresses, 8)
        found = np.zeros(len(addresses), dtype=np.int64)
        found[there] = (self.ends[regions[there]] - addresses[there]).astype(np.int64)
        return found

    def marks(self, addresses: Addresses) -> Indices:
        """A number for each of these readable addresses, the same within 16 bytes."""
        at = np.searchsorted(self.starts, addresses, side="right") - 1
        return self._mark_shift[at] + (addresses >> np.uint64(4)).astype(np.int64)

    def words(self, addresses: Addresses, count: int) -> Words:
        """So many words from each address on, in rows; zeros where they cannot be read."""
        if not len(addresses):
            return np.zeros((0, count), dtype=np.uint64)
        found = np.zeros((len(addresses), count), dtype=np.uint64)
        regions, there = self._regions(addresses, 8 * count)
        if not there.any():
            return found
        everywhere = bool(there.all())
        at = addresses if everywhere else addresses[there]
        shift = self._shift[regions if everywhere else regions[there]]
        places = at.astype(np.int64)[:, None] + 8 * np.arange(count)
        chunks = (places >> _BITS) + shift[:, None]
        # What lies between the first and the last word of so few is in their chunks.
        edges = chunks[:, :: max(1, count - 1)] if 8 * count <= _CHUNK else chunks
        if not self._bring(edges):  # more than may be copied at once: neighbours together
            half = len(addresses) // 2
            order = np.argsort(addresses, kind="stable")
            for part in (order[:half], order[half:]) if half else ():
                found[part] = self.words(addresses[part], count)
            return found
        index = (self._slots[chunks].astype(np.int64) << (_BITS - 3)) + (
            (places & (_CHUNK - 1)) >> 3
        )
        if everywhere:
            everything: Words = self._copy[index]
            return everything
        found[there] = self._copy[index]
        return found

    def word(self, addresses: Addresses) -> Words:
        """The word at each address; zero where it cannot be read."""
        found: Words = self.words(addresses, 1)[:, 0]
        return found

    def list_at(self, address: int, count: int) -> list[int]:
        """Some words in a row, as plain numbers; none where they cannot be read."""
        if address & 7 or count < 0:
            return []
        data = self.bytes_at(address, 8 * count)
        return memoryview(data).cast("Q").tolist() if len(data) == 8 * count else []

    def word_at(self, address: int) -> int:
        """One word as a plain number, for whoever goes from one to the next; else zero."""
        at = bisect_right(self._start_list, address) - 1
        if at < 0 or address & 7 or address + 8 > self._end_list[at]:
            return 0
        chunk = (address >> _BITS) + self._shift_list[at]
        if self._slot_view[chunk] < 0:
            self._bring(np.array([chunk]))
        place = (self._slot_view[chunk] << _BITS - 3) + ((address & _CHUNK - 1) >> 3)
        return int(self._word_view[place])

    def mark_at(self, address: int) -> int:
        """The number for marks of an address; below zero where it cannot be read."""
        at = bisect_right(self._start_list, address) - 1
        if at < 0 or address >= self._end_list[at]:
            return -1
        return (address >> 4) + self._mark_shift_list[at]

    def bytes_at(self, address: int, size: int) -> bytes:
        """Some bytes, from any address on; fewer where there are no more."""
        at = bisect_right(self._start_list, address) - 1
        if at < 0 or address >= self._end_list[at]:
            return b""
        end = min(address + size, self._end_list[at])
        parts = []
        while address < end:
            chunk = (address >> _BITS) + self._shift_list[at]
            if self._slot_view[chunk] < 0:
                self._bring(np.array([chunk]))
            stop = min(end, (address | _CHUNK - 1) + 1)
            place = (self._slot_view[chunk] << _BITS) + (address & _CHUNK - 1)
            parts.append(self._byte_view[place : place + stop - address])
            address = stop
        return b"".join(parts)

    def now(self, addresses: Addresses, count: int) -> Words:
        """Words as they are by now, past the copy; for a few places only."""
        found = np.zeros((len(addresses), count), dtype=np.uint64)
        for i, address in enumerate(addresses.tolist()):
            data = self._memory.read(address, 8 * count)
            if len(data) == 8 * count:
                found[i] = np.frombuffer(data, dtype=np.uint64)
        return found

    @property
    def age(self) -> float:
        """How many seconds ago the oldest part of it may have been read."""
        return time.monotonic() - self._since

    def forget(self) -> None:
        """Let go of what was read: all is read as it is by then, memory that is new with it."""
        self._drop()
        self._since = time.monotonic()
        with contextlib.suppress(OSError):
            self._know_more(listed(self._memory.pid))

    def _drop(self) -> None:
        self._slots[:] = -1
        self._used, self._again = 0, True
        self._filled.clear()

    def _know_more(self, maps: Sequence[Mapping]) -> None:
        """Take in what came since, behind what was there or elsewhere."""
        edges = [
            edge for pair in zip(self._start_list, self._end_list, strict=True) for edge in pair
        ]
        room, found = self.most_marks - self.mark_places, []
        for m in maps:
            for start, end in cut((m.start, m.end), edges) if _may_hold_objects(m) else ():
                at = bisect_right(self._start_list, start) - 1
                if (at < 0 or start >= self._end_list[at]) and (end - start) // 16 <= room:
                    room -= (end - start) // 16
                    found.append(_Region(start, end, whole=False))
        if found:
            self._know(found)

    def _regions(self, addresses: Addresses, size: int) -> tuple[Indices, Flags]:
        at = np.searchsorted(self.starts, addresses, side="right") - 1
        there = (at >= 0) & (addresses & np.uint64(7) == 0)
        if len(self.ends):
            there &= addresses <= self.ends[at] - np.uint64(min(size, PAGE))
            if size > PAGE:
                there &= addresses + np.uint64(size) <= self.ends[at]
        return at, there

    def _bring(self, chunks: Indices) -> bool:
        """Read those of these chunks that are not in the copy yet; whether they fit into it."""
        missing = self._slots[chunks] < 0
        if not missing.any():
            return True
        wanted = np.unique(chunks[missing])
        if self._used + len(wanted) > self._most:
            # What was read is let go of; what is asked for must fit together with it.
            self._drop()
            wanted = np.unique(chunks)
            if len(wanted) > self._most:
                return False
        apart = (np.diff(wanted) != 1) | (np.diff(self._chunk_region[wanted]) != 0)
        for run in np.split(wanted, np.flatnonzero(apart) + 1):
            for part in range(0, len(run), _MOST_AT_ONCE):
                self._read(run[part : part + _MOST_AT_ONCE])
        return True

    def _read(self, run: Indices) -> None:
        """Read chunks that follow one another in one mapping."""
        at = int(self._chunk_region[run[0]])
        start = (int(run[0]) - self._shift_list[at]) << _BITS
        low, high = self._start_list[at], self._end_list[at]
        place = self._used * _WORDS
        into = self._copy[place : place + len(run) * _WORDS]
        if self._again:
            into[:] = 0
        end = min(high, start + len(run) * _CHUNK)
        span = max(low, start), end
        for a, b in self._there(at, span):
            self._memory.read_into(into[(a - start) // 8 : (b - start) // 8], a)
        self._slots[run] = np.arange(self._used, self._used + len(run))
        self._used += len(run)

    def _there(self, at: int, span: Span) -> Iterable[Span]:
        """What is in memory of a stretch of a region: to read another page would make it."""
        low, high = self._start_list[at], self._end_list[at]
        if self._whole[at]:
            return [span]
        if high - low > _LARGE_REGION:
            return self._memory.present(*span)
        if at not in self._filled:  # once for all that will be read of it
            found = list(self._memory.present(low, high))
            self._filled[at] = [a for a, _ in found], [b for _, b in found]
        begins, ends = self._filled[at]
        first, last = bisect_right(ends, span[0]), bisect_left(begins, span[1])
        pieces = zip(begins[first:last], ends[first:last], strict=True)
        return [(max(a, span[0]), min(b, span[1])) for a, b in pieces]


class _Region:
    """A stretch of memory, and where its numbers begin."""

    def __init__(self, start: int, end: int, whole: bool) -> None:
        self.start, self.end, self.whole = start, end, whole
        self.first_chunk = self.first_mark = 0

    @property
    def chunks(self) -> int:
        return (self.end - 1 >> _BITS) - (self.start >> _BITS) + 1


def _has_objects(m: Mapping) -> bool:
    return m.rss > 0 and _may_hold_objects(m)


def _may_hold_objects(m: Mapping) -> bool:
    """Private memory that is read; devices and what is kept for later are left."""
    if m.path.startswith(("/dev/", "[v")) or m.reserved > _LARGEST:
        return False
    return m.perms.startswith("r") and "p" in m.perms
