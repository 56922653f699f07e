"""One reading of an environment's process from outside, while it waits."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from memfit.measure.kernel import proc
from memfit.measure.kernel.mappings import Mapping as MemoryMapping
from memfit.measure.kernel.mappings import mappings
from memfit.measure.kernel.process_memory import ProcessMemory, Span
from memfit.measure.live.pymalloc import pools
from memfit.model.profile import Counted, EnvReading

_SHARED = ("/dev/shm/", "/memfd:", "/dev/zero", "/SYSV")
_HEAP = "[heap]"
_ARENA, _MALLOCS = 1 << 20, 1 << 26  # of Python's; of malloc's for threads: where they begin
_LEAST_ROOM = 1 << 18  # of a stretch of address space that may be filled


@dataclass(frozen=True, kw_only=True)
class Said:
    """What the child has said of itself: see `memfit.model.stepping_words`."""

    frames: int
    episodes: int
    ended: bool
    nanoseconds: int
    in_use: int
    mapped: int
    free: int
    arena: int
    collects: bool


def quick_reading(tree: proc.Tree, said: Said, leg: int) -> EnvReading | None:
    """The tree's memory, and what malloc has in use; None where the process is gone."""
    members = tree.members()
    held = whole = 0
    for pid in members:
        found = proc.rollup(pid)
        if found is not None:
            held += found.pss_anon + found.pss_shmem
            whole += found.pss
    counts = _numbers(tree, said, members)
    return _reading(said, leg, held, whole, counts) if counts else None


def full_reading(
    tree: proc.Tree, said: Said, leg: int, *, collected: bool = False
) -> EnvReading | None:
    """The same with the bytes of Python's objects, and what address space is reserved."""
    members = tree.members()
    held = whole = 0
    for pid in members:
        found = proc.rollup(pid) if pid != tree.main else None
        if found is not None:
            held += found.pss_anon + found.pss_shmem
            whole += found.pss
    counts = _numbers(tree, said, members)
    if not counts:
        return None
    others = held
    try:
        maps = mappings(tree.main)
    except OSError:
        return None
    python = pooled = apart = 0
    with ProcessMemory(tree.main) as memory:
        for mapping in maps:
            if mapping.nameless and mapping.writable and mapping.rss:
                spans, used = pools(mapping, memory)
                python += used
                pooled += sum(end - start for start, end in spans)
                if mapping.start % _MALLOCS:
                    apart += mapping.anonymous - _in_arenas(spans, memory)
    own = [m for m in maps if _is_memory(m)]
    writable = [m for m in own if m.writable and m.path != _HEAP]
    shared = sum(m.reserved for m in writable if m.path.startswith(_SHARED))
    reserved = sum(m.reserved for m in writable) - shared
    heap = sum(m.reserved for m in own if m.path == _HEAP)
    beyond = said.mapped + max(0, said.arena - heap)
    apart += others - said.mapped
    apart += sum(m.pss for m in own if m.path.startswith(_SHARED))
    held += sum(m.pss if m.path.startswith(_SHARED) else m.anonymous for m in maps)
    whole += sum(m.pss for m in maps)
    counts = {
        **counts,
        Counted.OTHERS: others,
        Counted.PYTHON: python,
        Counted.MAPPED: max(0, reserved - beyond),
        Counted.SHARED: shared,
    }
    rooms = {
        m.start: (m.reserved, m.rss)
        for m in own
        if m.writable and (m.reserved >= _LEAST_ROOM or m.path == _HEAP)
    }
    return replace(
        _reading(said, leg, held, whole, counts),
        rooms=rooms,
        pools=pooled,
        apart=apart,
        collected=collected,
        full=True,
    )


def _in_arenas(spans: list[Span], memory: ProcessMemory) -> int:
    """The pages of Python's arenas, in which pools that are free now have none of the spans."""
    found = end = 0
    for start, stop in spans:
        while stop > end:
            begin = max(start, end)
            end = begin + _ARENA
            found += memory.resident(begin, end)
    return found


def _is_memory(mapping: MemoryMapping) -> bool:
    """Whether it is memory of its own, and no file."""
    if mapping.nameless or mapping.path in (_HEAP, "[stack]"):
        return True
    return mapping.path.startswith(("[anon", *_SHARED))


def _numbers(tree: proc.Tree, said: Said, members: list[int]) -> dict[Counted, int]:
    """Counts that cost next to nothing; none where the process is gone."""
    threads = proc.threads(tree.main)
    if not threads:
        return {}
    found = {
        Counted.MALLOC: said.in_use + said.mapped,
        Counted.THREADS: threads,
        Counted.PROCESSES: len(members),
    }
    with suppress(OSError):
        found[Counted.FILES] = len(os.listdir(f"/proc/{tree.main}/fd"))
    return found


def _reading(
    said: Said,
    leg: int,
    held: int,
    whole: int,
    counts: Mapping[Counted, int],
) -> EnvReading:
    return EnvReading(
        frame=said.frames,
        episode=said.episodes,
        seconds=said.nanoseconds / 1e9,
        held=held,
        whole=whole,
        counts=counts,
        free=said.free,
        blocks=said.mapped,
        ended=said.ended,
        full=False,
        leg=leg,
    )
