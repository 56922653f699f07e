"""Whose C and C++ objects fill the heap: follow pointers from each library's data, from outside.

malloc's blocks lie one after the other, each with its size before it, so that all can be listed
from a copy of the heap. A block belongs to the library from whose data it is reached first, through
other blocks or at once. What no library reaches belongs to Python and its arrays.

torch's tensors are C++ objects too: each begins with a pointer into libc10, and points to its
numbers. So those are found that no Python object knows: what autograd keeps for the backward pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memfit.measure.elf import zeroed_bytes
from memfit.measure.layers import library_name
from memfit.measure.mappings import Mapping, Pagemap, Span, split, stretches
from memfit.measure.peek import Memory
from memfit.measure.proc import PAGE
from memfit.model import Native

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Words = NDArray[np.uint64]
    Indices = NDArray[np.int64]

_LARGEST_HEAP = 2**30  # a copy of it is made, and several times as much is worked with
_HEAD, _LEAST_BLOCK, _FLAGS, _BEFORE_IN_USE = 16, 32, 7, 1
_OWN_MAPPING = 2
_CHAIN = 64  # so many blocks do not follow one another by chance
_INTERPRETER = ("libpython", "python")
_TENSORS = "libc10"


@dataclass(frozen=True, kw_only=True)
class HeapCopy:
    """The main heap at one moment, and the mappings at that moment."""

    start: int
    words: Words
    there: NDArray[np.bool_]  # its pages that are in memory
    maps: Sequence[Mapping]

    def resident(self, offsets: Indices, sizes: Indices) -> Indices:
        """How much of each of these stretches is in memory."""
        import numpy as np

        before = np.concatenate([[0], np.cumsum(self.there)]) * PAGE
        edges = np.arange(len(before)) * PAGE
        ends, begins = (np.interp(at, edges, before) for at in (offsets + sizes, offsets))
        return np.asarray(ends - begins, dtype=np.int64)


def copy_heap(
    maps: Sequence[Mapping], pages: Pagemap, memory: Memory, numbers: Sequence[Span] = ()
) -> HeapCopy | None:
    """Nothing where there is no heap, or where it cannot be read or is too large.

    Pages that are known to hold `numbers` alone are left out.
    """
    import numpy as np

    # Several mappings where parts of it were asked to be of huge pages; one after the other.
    edges = [edge for m in maps if m.path == "[heap]" for edge in (m.start, m.end)]
    start, end = min(edges, default=0), max(edges, default=0)
    if not 0 < end - start <= _LARGEST_HEAP or not pages.readable:
        return None
    there = np.zeros((end - start) // PAGE, dtype=bool)
    for a, b in pages.present(start, end):
        there[(a - start) // PAGE : (b - start) // PAGE] = True
    wanted = there.copy()
    for a, b in numbers:
        if start <= a and b <= end:
            wanted[-((start - a) // PAGE) : (b - start) // PAGE] = False
    words = np.zeros((end - start) // 8, dtype=np.uint64)
    for a, b in stretches(wanted):
        memory.read_into(words[a * PAGE // 8 : b * PAGE // 8], start + a * PAGE)
    return HeapCopy(start=start, words=words, there=there, maps=maps)


def follow(heap: HeapCopy, pages: Pagemap, memory: Memory) -> Native:
    """What libraries hold in the heap, and where tensors have their numbers."""
    import numpy as np

    maps = heap.maps
    blocks = _Blocks(heap.start, heap.words)
    if not blocks.count:
        return Native()
    tensors = blocks.words_of(
        _beginning_in(blocks, [m for m in maps if library_name(m.path) == _TENSORS])
    )
    numbers = blocks.pointed_to(tensors)
    numbers = numbers[(blocks.sizes[numbers] >= Native.LEAST_TENSOR) & blocks.in_use[numbers]]
    blocks.blank(numbers)
    blocks.blank(np.flatnonzero(~blocks.in_use))
    owner = np.full(blocks.count, -1, dtype=np.int32)
    names: list[str] = []
    reached = []
    for name, data in _data(maps, pages):
        if name.startswith(_INTERPRETER):
            continue
        roots = np.unique(
            np.concatenate(
                [blocks.pointed_to(_words((m.start, m.end), pages, memory)) for m in data]
            )
        )
        roots = roots[owner[roots] < 0]
        owner[roots] = len(names)
        names.append(name)
        reached.append(roots)
    if reached:
        _spread(owner, np.concatenate(reached), *blocks.pointers())
    owner[numbers] = -1
    used = blocks.in_use
    owned = np.bincount(owner[used] + 1, weights=blocks.sizes[used], minlength=len(names) + 1)
    places, sizes = blocks.offsets[numbers], blocks.sizes[numbers]
    in_heap = (places + heap.start, sizes, heap.resident(places, sizes))
    free = heap.resident(blocks.offsets[:-1][~used], blocks.sizes[~used])
    return Native(
        libraries={name: int(owned[i + 1]) for i, name in enumerate(names) if owned[i + 1]},
        tensors=(
            *zip(*(column.tolist() for column in in_heap), strict=True),
            *_own_mappings(tensors, maps, pages, memory),
        ),
        free=int(free.sum()),
    )


def _beginning_in(blocks: _Blocks, library: Sequence[Mapping]) -> Indices:
    """The blocks in use that begin with a pointer into a library: objects of its classes."""
    import numpy as np

    if not library:
        return np.zeros(0, dtype=np.int64)
    begins = blocks.words[(blocks.offsets[:-1] + _HEAD) // 8]
    low, high = min(m.start for m in library), max(m.end for m in library)
    return np.flatnonzero((begins >= np.uint64(low)) & (begins < np.uint64(high)) & blocks.in_use)


def _own_mappings(
    words: Words, maps: Sequence[Mapping], pages: Pagemap, memory: Memory
) -> Iterator[tuple[int, int, int]]:
    """Large blocks that are mappings of their own, to which some of these words point."""
    import numpy as np

    nameless = [m for m in maps if m.nameless and m.writable]
    starts = np.array([m.start for m in nameless], dtype=np.uint64)
    at = np.searchsorted(starts, words, side="right") - 1
    for word, i in sorted({(int(w), int(i)) for w, i in zip(words, at, strict=True) if i >= 0}):
        mapping, page = nameless[i], word & -PAGE
        # Numbers begin behind the head; or, where their holder aligned them himself, near it.
        for head in (word - _HEAD, page) if page + _HEAD < word else (word - _HEAD,):
            found = _block_at(head, mapping, pages, memory)
            if found:
                yield found
                break


def _block_at(
    head: int, mapping: Mapping, pages: Pagemap, memory: Memory
) -> tuple[int, int, int] | None:
    """The block that is a mapping of its own and has its head here, if there is one."""
    import numpy as np

    if not mapping.start <= head < mapping.end:
        return None
    # The head says what was left out before it to align the numbers, and the size.
    gone = not pages.resident(head, head + _HEAD)
    said = np.frombuffer(b"" if gone else memory.read(head, _HEAD), dtype=np.uint64)
    if len(said) == 2 and int(said[1]) & _OWN_MAPPING:
        start, size = head - int(said[0]), int(said[0]) + (int(said[1]) & ~_FLAGS)
    elif gone and head - mapping.start < PAGE:  # given back by now: it was all of it
        start, size = mapping.start, mapping.reserved
    else:
        return None
    whole = start % PAGE == 0 and size % PAGE == 0 and start >= mapping.start
    if not whole or not Native.LEAST_TENSOR <= size <= mapping.end - start:
        return None
    return start, size, mapping.rss if gone else pages.resident(start, start + size)


def _from(blocks: Indices, first: Indices, to: Indices) -> Indices:
    """Where the pointers of these blocks lead."""
    import numpy as np

    counts = first[blocks + 1] - first[blocks]
    begins = np.cumsum(counts) - counts
    return to[np.repeat(first[blocks] - begins, counts) + np.arange(int(counts.sum()))]


def _spread(owner: NDArray[np.int32], reached: Indices, first: Indices, to: Indices) -> None:
    """Give every block that is not owned yet to the owner of the block that reaches it first."""
    import numpy as np

    while len(reached):
        heirs = np.repeat(owner[reached], first[reached + 1] - first[reached])
        found = _from(reached, first, to)
        new = owner[found] < 0
        found, once = np.unique(found[new], return_index=True)
        owner[found] = heirs[new][once]
        reached = found


class _Blocks:
    """The blocks of a heap, by address."""

    def __init__(self, start: int, words: Words) -> None:
        import numpy as np

        self.start = start
        self.words = words
        edges = list(_walk(words))
        self.offsets = np.array(edges, dtype=np.int64)
        self.count = max(0, len(edges) - 1)
        self.sizes = np.diff(self.offsets)
        # Whether a block is in use stands in the next one's head; the last is what is left.
        self.in_use = np.zeros(self.count, dtype=bool)
        heads = words[self.offsets[1:-1] // 8 + 1] if self.count > 1 else words[:0]
        self.in_use[: len(heads)] = (heads & np.uint64(_BEFORE_IN_USE)) != 0

    def pointed_to(self, words: Words) -> Indices:
        """The blocks into which some of these words point."""
        import numpy as np

        return np.unique(self._targets(words)[1])

    def words_of(self, blocks: Indices) -> Words:
        """All words of these blocks."""
        import numpy as np

        begins, ends = self.offsets[blocks] // 8, self.offsets[blocks + 1] // 8
        parts = [self.words[a:b] for a, b in zip(begins, ends, strict=True)]
        return np.concatenate(parts) if parts else self.words[:0]

    def blank(self, blocks: Indices) -> None:
        """What these blocks say is of no account; their heads stay."""
        head = _HEAD // 8
        for a, b in zip(self.offsets[blocks] // 8, self.offsets[blocks + 1] // 8, strict=True):
            self.words[a + head : b] = 0

    def pointers(self) -> tuple[Indices, Indices]:
        """All pointers between blocks: where those of each begin, and where they lead."""
        import numpy as np

        at, to = self._targets(self.words)
        of = np.searchsorted(self.offsets, at * 8, side="right") - 1
        order = np.argsort(of, kind="stable")
        first = np.searchsorted(of[order], np.arange(self.count + 1))
        return first, to[order]

    def _targets(self, words: Words) -> tuple[Indices, Indices]:
        import numpy as np

        low, high = self.start + _HEAD, self.start + int(self.offsets[-1])
        at = np.flatnonzero((words >= np.uint64(low)) & (words < np.uint64(high)))
        offsets = (words[at] - np.uint64(low)).astype(np.int64)
        to = np.searchsorted(self.offsets, offsets, side="right") - 1
        # malloc's own lists of free blocks point to heads: to the end of the block before.
        held = offsets + _HEAD != self.offsets[to + 1]
        return at[held], to[held]


def _walk(words: Words) -> Iterator[int]:
    """The offset of each block, and the end of the last.

    The process goes on while its heap is copied, so that a size here and there makes no sense: the
    walk then goes on from the next place from which many blocks follow one another.
    """
    view = memoryview(words)  # type: ignore[arg-type]
    end, offset = 8 * len(words), 0
    while offset + _HEAD <= end:
        yield offset
        size = view[offset // 8 + 1] & ~_FLAGS
        if _LEAST_BLOCK <= size <= end - offset and not size % _HEAD:
            offset += size
        else:
            offset = _next_chain(words, view, offset + _HEAD)
    yield end


def _next_chain(words: Words, view: memoryview[int], offset: int) -> int:
    import numpy as np

    end, piece = 8 * len(words), 1 << 20
    for begin in range(offset, end - _HEAD, piece):
        heads = words[begin // 8 + 1 : (begin + piece) // 8 + 1 : 2]
        sizes = heads & np.uint64(2**64 - 1 - _FLAGS)
        likely = (sizes >= _LEAST_BLOCK) & (sizes <= end - begin) & (sizes % _HEAD == 0)
        for at in np.flatnonzero(likely).tolist():
            if _is_chain(view, begin + _HEAD * at, end):
                return begin + _HEAD * at
    return end


def _is_chain(view: memoryview[int], at: int, end: int) -> bool:
    """Whether many blocks follow one another from here, or all up to the end."""
    for _ in range(_CHAIN):
        if at + _HEAD > end:
            break
        size = view[at // 8 + 1] & ~_FLAGS
        if not _LEAST_BLOCK <= size <= end - at or size % _HEAD:
            return False
        at += size
    else:
        return True
    return at == end


def _words(span: Span, pages: Pagemap, memory: Memory) -> Words:
    """A copy of some memory; what is not in memory reads as zeros, and is not made by reading."""
    import numpy as np

    copy = np.zeros((span[1] - span[0]) // 8, dtype=np.uint64)
    for a, b in pages.present(*span):
        memory.read_into(copy[(a - span[0]) // 8 : (b - span[0]) // 8], a)
    return copy


def _data(maps: Sequence[Mapping], pages: Pagemap) -> Iterator[tuple[str, list[Mapping]]]:
    """Each library with its writable data, zeroed data included."""
    found: dict[str, list[Mapping]] = {}
    programs = {m.path for m in maps if "x" in m.perms and m.path.startswith("/")}
    before: Mapping | None = None
    for mapping in maps:
        if mapping.writable and mapping.path in programs:
            found.setdefault(library_name(mapping.path), []).append(mapping)
        elif mapping.nameless and mapping.writable and before is not None:
            zeroed = zeroed_bytes(before.path) if before.path in programs else 0
            if zeroed and before.end == mapping.start:
                part = split(mapping, [mapping.start + zeroed], pages)[0]
                found.setdefault(library_name(before.path), []).append(part)
        before = mapping
    yield from found.items()
