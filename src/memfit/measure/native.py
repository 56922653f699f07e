"""Whose C and C++ objects fill the heap: follow pointers from each library's data, from outside.

malloc's blocks lie one after the other, each with its size before it, so that all can be listed
from a copy of the heap. A block belongs to the library from whose data it is reached first, through
other blocks or at once. What no library reaches belongs to Python and its arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from memfit.measure.elf import zeroed_bytes
from memfit.measure.layers import library_name
from memfit.measure.mappings import Mapping, Pagemap, mappings, split
from memfit.measure.peek import Memory

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Words = NDArray[np.uint64]
    Indices = NDArray[np.int64]

_LARGEST_HEAP = 2**30  # a copy of it is made, and several times as much is worked with
_HEAD, _LEAST_BLOCK, _FLAGS, _BEFORE_IN_USE = 16, 32, 7, 1
_INTERPRETER = ("libpython", "python")


def native_bytes(pid: int) -> dict[str, int]:
    """Bytes in the main heap by library; empty where the heap cannot be read or is too large."""
    try:
        maps = mappings(pid)
    except OSError:
        return {}
    heap = next((m for m in maps if m.path == "[heap]"), None)
    pages = Pagemap(pid)
    try:
        if heap is None or heap.reserved > _LARGEST_HEAP or not pages.readable:
            return {}
        with Memory(pid) as memory:
            return _by_library(heap, maps, pages, memory)
    finally:
        pages.close()


def _by_library(
    heap: Mapping, maps: Sequence[Mapping], pages: Pagemap, memory: Memory
) -> dict[str, int]:
    import numpy as np

    words = _words(heap, pages, memory)
    blocks = _Blocks(heap.start, words)
    if not blocks.count:
        return {}
    owner = np.full(blocks.count, -1, dtype=np.int32)
    names: list[str] = []
    reached = []
    for name, data in _data(maps, pages):
        if name.startswith(_INTERPRETER):
            continue
        roots = np.unique(
            np.concatenate([blocks.pointed_to(_words(m, pages, memory)) for m in data])
        )
        roots = roots[owner[roots] < 0]
        owner[roots] = len(names)
        names.append(name)
        reached.append(roots)
    if reached:
        _spread(owner, np.concatenate(reached), *blocks.pointers())
    owned = np.bincount(
        owner[blocks.in_use] + 1, weights=blocks.sizes[blocks.in_use], minlength=len(names) + 1
    )
    return {name: int(owned[i + 1]) for i, name in enumerate(names) if owned[i + 1]}


def _spread(owner: NDArray[np.int32], reached: Indices, first: Indices, to: Indices) -> None:
    """Give every block that is not owned yet to the owner of the block that reaches it first."""
    import numpy as np

    while len(reached):
        counts = first[reached + 1] - first[reached]
        begins = np.cumsum(counts) - counts
        at = np.repeat(first[reached] - begins, counts) + np.arange(int(counts.sum()))
        found, heirs = to[at], np.repeat(owner[reached], counts)
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
        self.in_use = np.ones(self.count, dtype=bool)
        # Whether a block is in use stands in the next one's head.
        heads = words[self.offsets[1:-1] // 8 + 1] if self.count > 1 else words[:0]
        self.in_use[: len(heads)] = (heads & np.uint64(_BEFORE_IN_USE)) != 0

    def pointed_to(self, words: Words) -> Indices:
        """The blocks into which some of these words point."""
        import numpy as np

        return np.unique(self._targets(words)[1])

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
        return at, np.searchsorted(self.offsets, offsets, side="right") - 1


def _walk(words: Words) -> Iterator[int]:
    """The offset of each block, and the end of the last; ends early where sizes make no sense."""
    view = memoryview(words)  # type: ignore[arg-type]
    end, offset = 8 * len(words), 0
    while offset + _HEAD <= end:
        size = view[offset // 8 + 1] & ~_FLAGS
        if size < _LEAST_BLOCK or size % _HEAD or offset + size > end:
            break
        yield offset
        offset += size
    yield offset


def _words(mapping: Mapping, pages: Pagemap, memory: Memory) -> Words:
    """A copy of a mapping; what is not in memory reads as zeros, and is not made by reading."""
    import numpy as np

    copy = np.zeros(mapping.reserved // 8, dtype=np.uint64)
    for a, b in pages.present(mapping.start, mapping.end):
        data = np.frombuffer(memory.read(a, b - a), dtype=np.uint64)
        at = (a - mapping.start) // 8
        copy[at : at + len(data)] = data
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
