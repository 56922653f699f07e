"""Attributes heap blocks to the C and C++ libraries from whose data pointers lead to them.

A block belongs to the library from whose data it is reached first, through other blocks or at once.
What no library reaches belongs to Python and its arrays.

torch's tensors are C++ objects too: each begins with a pointer into libc10, and points to its
numbers. So those are found that no Python object knows: what autograd keeps for the backward pass.
Where numpy's arrays have theirs is told by the arrays themselves, among Python's small objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import inf

import numpy as np
from numpy.typing import NDArray

from memfit.measure.kernel.elf import zeroed_bytes
from memfit.measure.kernel.mappings import Mapping, split
from memfit.measure.kernel.process_memory import ProcessMemory
from memfit.measure.live.heap import (
    HEAD,
    HeapBlocks,
    HeapCopy,
    Indices,
    TooLong,
    Words,
    check,
    copy_of,
)
from memfit.measure.live.mapped_blocks import MappedBlocks
from memfit.measure.live.mapping_layers import library_name
from memfit.model import Native

_INTERPRETER = ("libpython", "python")
_TENSORS = "libc10"


def follow(
    heap: HeapCopy | None,
    arrays: Words,
    maps: Sequence[Mapping],
    memory: ProcessMemory,
    until: float = inf,
) -> Native:
    """What libraries hold in the heap, and where tensors and arrays have their numbers.

    `arrays` are the places of numbers that arrays know of. Without a heap only those are found
    that are a mapping of their own; so it is where following takes longer than `until`.
    """
    try:
        return _followed(heap, arrays, maps, memory, until)
    except TooLong:
        found = MappedBlocks(maps, memory).pointed_to(arrays)
        return Native(arrays=tuple(found), cut=True)


def _followed(
    heap: HeapCopy | None,
    arrays: Words,
    maps: Sequence[Mapping],
    memory: ProcessMemory,
    until: float,
) -> Native:
    mapped = MappedBlocks(maps, memory)
    blocks = HeapBlocks(heap.start, heap.words, until) if heap is not None else None
    if heap is None or blocks is None or not blocks.count:
        return Native(arrays=tuple(mapped.pointed_to(arrays)))
    tensors = blocks.words_of(
        _beginning_in(blocks, [m for m in maps if library_name(m.path) == _TENSORS])
    )
    of_tensors = _numbers(blocks, tensors)
    of_arrays = np.setdiff1d(_numbers(blocks, arrays), of_tensors)
    numbers = np.concatenate([of_tensors, of_arrays])
    blocks.blank(numbers)
    blocks.blank(np.flatnonzero(~blocks.in_use))
    owner = np.full(blocks.count, -1, dtype=np.int32)
    names: list[str] = []
    reached = []
    for name, data in _data(maps, memory):
        if name.startswith(_INTERPRETER):
            continue
        check(until)
        roots = np.unique(
            np.concatenate(
                [blocks.pointed_to(copy_of((m.start, m.end), memory).words) for m in data]
            )
        )
        roots = roots[owner[roots] < 0]
        owner[roots] = len(names)
        names.append(name)
        reached.append(roots)
    if reached:
        check(until)
        _spread(owner, np.concatenate(reached), *blocks.pointers(), until)
    owner[numbers] = -1
    used = blocks.in_use
    owned = np.bincount(owner[used] + 1, weights=blocks.sizes[used], minlength=len(names) + 1)
    free = heap.resident(blocks.offsets[:-1][~used], blocks.sizes[~used])
    return Native(
        libraries={name: int(owned[i + 1]) for i, name in enumerate(names) if owned[i + 1]},
        tensors=(*_in_heap(of_tensors, blocks, heap), *mapped.pointed_to(tensors)),
        arrays=(*_in_heap(of_arrays, blocks, heap), *mapped.pointed_to(arrays)),
        free=int(free.sum()),
    )


def _numbers(blocks: HeapBlocks, words: Words) -> Indices:
    """The larger blocks in use into which some of these words point."""
    found = blocks.pointed_to(words)
    return found[(blocks.sizes[found] >= Native.LEAST_NUMBERS) & blocks.in_use[found]]


def _in_heap(found: Indices, blocks: HeapBlocks, heap: HeapCopy) -> Iterator[tuple[int, int, int]]:
    places, sizes = blocks.offsets[found], blocks.sizes[found]
    columns = (places + heap.start, sizes, heap.resident(places, sizes))
    return zip(*(column.tolist() for column in columns), strict=True)


def _beginning_in(blocks: HeapBlocks, library: Sequence[Mapping]) -> Indices:
    """The blocks in use that begin with a pointer into a library: objects of its classes."""
    if not library:
        return np.zeros(0, dtype=np.int64)
    begins = blocks.words[(blocks.offsets[:-1] + HEAD) // 8]
    low, high = min(m.start for m in library), max(m.end for m in library)
    return np.flatnonzero((begins >= np.uint64(low)) & (begins < np.uint64(high)) & blocks.in_use)


def _spread(
    owner: NDArray[np.int32], reached: Indices, first: Indices, to: Indices, until: float
) -> None:
    """Give every block that is not owned yet to the owner of the block that reaches it first."""
    while len(reached):
        check(until)
        counts = first[reached + 1] - first[reached]
        begins = np.cumsum(counts) - counts
        # Where the pointers of these blocks lead, and whose these are.
        found = to[np.repeat(first[reached] - begins, counts) + np.arange(int(counts.sum()))]
        heirs = np.repeat(owner[reached], counts)
        new = owner[found] < 0
        found, once = np.unique(found[new], return_index=True)
        owner[found] = heirs[new][once]
        reached = found


def _data(maps: Sequence[Mapping], memory: ProcessMemory) -> Iterator[tuple[str, list[Mapping]]]:
    """Each library with its writable data, zeroed data included."""
    found: dict[str, list[Mapping]] = {}
    programs = {m.path for m in maps if "x" in m.perms and m.path.startswith("/")}
    for before, mapping in pairwise([None, *maps]):
        assert mapping is not None
        if mapping.writable and mapping.path in programs:
            found.setdefault(library_name(mapping.path), []).append(mapping)
        elif mapping.nameless and mapping.writable and before is not None:
            zeroed = zeroed_bytes(before.path) if before.path in programs else 0
            if zeroed and before.end == mapping.start:
                part = split(mapping, [mapping.start + zeroed], memory)[0]
                found.setdefault(library_name(before.path), []).append(part)
    yield from found.items()
