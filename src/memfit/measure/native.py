"""Whose C and C++ objects fill the heap: follow pointers from each library's data, from outside.

A block belongs to the library from whose data it is reached first, through other blocks or at once.
What no library reaches belongs to Python and its arrays.

torch's tensors are C++ objects too: each begins with a pointer into libc10, and points to its
numbers. So those are found that no Python object knows: what autograd keeps for the backward pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from memfit.measure.elf import zeroed_bytes
from memfit.measure.heap import FLAGS, HEAD, Blocks, HeapCopy, copy_of
from memfit.measure.layers import library_name
from memfit.measure.mappings import Mapping, Pagemap, split
from memfit.measure.peek import Memory
from memfit.measure.proc import PAGE
from memfit.model import Native

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Words = NDArray[np.uint64]
    Indices = NDArray[np.int64]

_OWN_MAPPING = 2
_INTERPRETER = ("libpython", "python")
_TENSORS = "libc10"


def follow(heap: HeapCopy, maps: Sequence[Mapping], pages: Pagemap, memory: Memory) -> Native:
    """What libraries hold in the heap, and where tensors have their numbers."""
    import numpy as np

    blocks = Blocks(heap.start, heap.words)
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
                [blocks.pointed_to(copy_of((m.start, m.end), pages, memory).words) for m in data]
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


def _beginning_in(blocks: Blocks, library: Sequence[Mapping]) -> Indices:
    """The blocks in use that begin with a pointer into a library: objects of its classes."""
    import numpy as np

    if not library:
        return np.zeros(0, dtype=np.int64)
    begins = blocks.words[(blocks.offsets[:-1] + HEAD) // 8]
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
    found = set()
    for word, i in sorted({(int(w), int(i)) for w, i in zip(words, at, strict=True) if i >= 0}):
        mapping, page = nameless[i], word & -PAGE
        # Numbers begin behind the head; or, where their holder aligned them, near it.
        for head in (word - HEAD, page) if page + HEAD < word else (word - HEAD,):
            block = _block_at(head, mapping, pages, memory)
            if block:
                found.add(block)
                break
    yield from sorted(found)


def _block_at(
    head: int, mapping: Mapping, pages: Pagemap, memory: Memory
) -> tuple[int, int, int] | None:
    """The block that is a mapping of its own and has its head here, if there is one."""
    import numpy as np

    if not mapping.start <= head < mapping.end:
        return None
    # The head says what was left out before it to align the numbers, and the size.
    gone = not pages.resident(head, head + HEAD)
    said = np.frombuffer(b"" if gone else memory.read(head, HEAD), dtype=np.uint64)
    if len(said) == 2 and int(said[1]) & _OWN_MAPPING:
        start, size = head - int(said[0]), int(said[0]) + (int(said[1]) & ~FLAGS)
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
