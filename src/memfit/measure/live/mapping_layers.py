"""Names every mapping of a process by its layer: libraries, heap, stacks, blocks, shared memory."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import pairwise

from memfit.measure.kernel.elf import zeroed_bytes
from memfit.measure.kernel.mappings import Mapping, split
from memfit.measure.kernel.process_memory import ProcessMemory, Span
from memfit.measure.live.pymalloc import pools
from memfit.measure.live.threads import Thread
from memfit.model import Layer, Part

# A thread's malloc arena is made of heaps of this size, each at a multiple of it.
_HEAP = 64 * 2**20
_HEAP_HEAD = struct.Struct("<4Q")
# malloc gives a block of this size or more a mapping of its own; smaller ones are somebody else's.
_BLOCK = 128 * 1024
_SHARED = ("/dev/shm/", "/memfd:", "/SYSV", "/dev/zero", "[anon_shmem")

Named = tuple[str, Layer, Mapping]


class Layers:
    """Takes the mappings of one process apart."""

    def __init__(
        self, maps: Sequence[Mapping], threads: Sequence[Thread], memory: ProcessMemory
    ) -> None:
        self.maps = maps
        self.memory = memory
        self.used_by_objects = 0
        self.stacks = {thread.stack: thread.pool for thread in threads if thread.stack}
        self.arenas = list(self._arenas())
        programs = {m.path for m in maps if "x" in m.perms}
        self.libraries = {m.path for m in maps if m.path in programs or ".so" in _file(m.path)}
        self.python = any("python" in _file(path) for path in programs)

    def parts(self) -> list[Part]:
        """One row for each name; they hold every mapping once."""
        rows: dict[tuple[str, Layer], list[Mapping]] = {}
        for name, layer, mapping in self._named():
            rows.setdefault((name, layer), []).append(mapping)
        found = [self._part(name, layer, maps) for (name, layer), maps in rows.items()]
        return [part for part in found if part.bytes or part.swap or part.layer is Layer.STACKS]

    def _part(self, name: str, layer: Layer, maps: Sequence[Mapping]) -> Part:
        # A segment may be mapped twice, and is still one.
        reserved = max if layer is Layer.SHARED else sum
        return Part(
            name=name,
            layer=layer,
            bytes=sum(m.pss for m in maps),
            resident=sum(m.rss for m in maps),
            reserved=reserved(m.reserved for m in maps),
            private=sum(m.private for m in maps),
            huge=sum(m.huge for m in maps),
            swap=sum(m.swap for m in maps),
            where=self._where(layer, maps),
            used=self.used_by_objects if layer is Layer.OBJECTS else 0,
            spans=tuple((m.start, m.end) for m in maps if not m.path or m.path == "[heap]"),
        )

    def _where(self, layer: Layer, maps: Sequence[Mapping]) -> str:
        count = f"{len(maps)} mapping{'s' if len(maps) > 1 else ''}"
        if layer is Layer.OBJECTS:
            return f"smaps: {count} with Python's pools, {self.used_by_objects:,} bytes in use"
        if layer in (Layer.LIBRARIES, Layer.FILES, Layer.SHARED) and maps[0].path:
            return f"smaps: {count} of {maps[0].path}"
        if layer is Layer.BLOCKS and len(maps) == 1:
            share = maps[0].rss / max(1, maps[0].reserved)
            return f"smaps: one anonymous mapping, {share:.0%} of it filled"
        return f"smaps: {count}"

    def _named(self) -> Iterable[Named]:
        maps = self.maps
        for before, mapping, after in zip([None, *maps], maps, [*maps[1:], None], strict=False):
            if mapping.path and not mapping.path.startswith("[anon:"):
                yield self._backed(mapping)
            elif mapping.forbidden:
                yield "kept address space", Layer.KERNEL, mapping
            elif after is not None and _is_loaders(mapping, after):
                yield "ld", Layer.LIBRARIES, mapping  # the dynamic loader's own
            else:
                yield from self._nameless(mapping, before)

    def _backed(self, mapping: Mapping) -> Named:
        """A mapping that the kernel gives a name."""
        path = mapping.path
        if path == "[heap]":
            return "heap", Layer.HEAP, mapping
        if path == "[stack]":
            return "main", Layer.STACKS, mapping
        if path.startswith("[") and not path.startswith("[anon_shmem"):
            return "kernel", Layer.KERNEL, mapping
        if path.startswith(_SHARED) or ("s" in mapping.perms and "(deleted)" in path):
            return shared_name(mapping), Layer.SHARED, mapping
        if path in self.libraries:
            return library_name(path), Layer.LIBRARIES, mapping
        return _file(path), Layer.FILES, mapping

    def _nameless(self, mapping: Mapping, before: Mapping | None) -> Iterable[Named]:
        """Memory without a name: what lies where tells what it is."""
        if "s" in mapping.perms:
            yield shared_name(mapping), Layer.SHARED, mapping
            return
        inside = [s for s in self.stacks if mapping.start < s[1] and s[0] < mapping.end]
        own = [(a, b) for a, b in self.arenas if mapping.start < b and a < mapping.end]
        zeroed = 0
        if before is not None and before.end == mapping.start and before.path in self.libraries:
            zeroed = mapping.start + zeroed_bytes(before.path)
        cuts = [edge for span in (*inside, *own) for edge in span] + [zeroed]
        for part in split(mapping, cuts, self.memory):
            stack = next((s for s in inside if s[0] <= part.start < s[1]), None)
            if stack is not None:
                yield self.stacks[stack], Layer.STACKS, part
            elif any(a <= part.start < b for a, b in own):
                yield "arenas", Layer.ARENAS, part
            elif part.start < zeroed and before is not None:
                yield library_name(before.path), Layer.LIBRARIES, part
            else:
                yield from self._blocks(part)

    def _blocks(self, mapping: Mapping) -> Iterable[Named]:
        """Python's pools apart from blocks that malloc mapped."""
        spans: Sequence[Span] = ()
        if self.python and mapping.writable and mapping.rss:
            spans, used = pools(mapping, self.memory)
            self.used_by_objects += used
        for part in split(mapping, [edge for span in spans for edge in span], self.memory):
            if any(a <= part.start < b for a, b in spans):
                yield "objects", Layer.OBJECTS, part
            elif part.reserved >= _BLOCK:
                yield f"{part.start:x}", Layer.BLOCKS, part
            else:
                yield "small", Layer.UNKNOWN, part

    def _arenas(self) -> Iterable[Span]:
        """Where threads' malloc arenas lie: a heap grows up to a multiple of its full size."""
        for mapping, after in pairwise([*self.maps, None]):
            assert mapping is not None
            if not (mapping.nameless and mapping.writable):
                continue
            end = mapping.end
            if after is not None and after.forbidden and after.start == mapping.end:
                end = after.end
            start = end - _HEAP
            if end % _HEAP == 0 and start >= mapping.start and self._is_heap(start):
                yield start, mapping.end

    def _is_heap(self, start: int) -> bool:
        """A heap begins with its arena's address, the heap before, and its size so far."""
        there = any(self.memory.present(start, start + 1))
        head = self.memory.read(start, _HEAP_HEAD.size) if there else b""
        if len(head) < _HEAP_HEAD.size:
            return False
        arena, _, size, protected = _HEAP_HEAD.unpack(head)
        return bool(arena) and size <= protected <= _HEAP and size % 4096 == 0 and size > 0


def spans_of(parts: Sequence[Part], layer: Layer) -> list[Span]:
    """Where the memory of a layer lies."""
    return [span for part in parts if part.layer is layer for span in part.spans]


def library_name(path: str) -> str:
    """`libtorch_cpu` of /…/libtorch_cpu.so.2."""
    return _file(path).split(".so")[0].split(".cpython-")[0]


def shared_name(mapping: Mapping) -> str:
    """The segment's own name, or its number where it has none."""
    path = mapping.path.removesuffix(" (deleted)")
    name = path.removeprefix("/dev/shm/").removeprefix("/").strip("[]")
    if not name or name.startswith(("dev/zero", "anon_shmem")):
        return f"anonymous-{mapping.inode}"
    return name


def _is_loaders(mapping: Mapping, after: Mapping) -> bool:
    """Whether the dynamic loader made a mapping: right below libc (TLS), or below its own code."""
    near = mapping.end == after.start and mapping.reserved < _BLOCK and "s" not in mapping.perms
    return near and (after.path == "[vvar]" or _file(after.path).startswith("libc.so"))


def _file(path: str) -> str:
    return path.removesuffix(" (deleted)").rsplit("/", 1)[-1]
