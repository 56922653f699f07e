"""The threads of a process: their names, their stacks, and the library that started each.

A thread's stack is the mapping that holds its stack pointer. The first words that a thread wrote
there lead back to the library that started it, so that a pool of threads can be named from outside.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from memfit.measure.kernel import proc
from memfit.measure.kernel.mappings import Mapping
from memfit.measure.kernel.proc import PAGE
from memfit.measure.kernel.process_memory import ProcessMemory, Span

_FIRST_BYTES = 16 * 1024  # of a stack, from its upper end: the thread's own data and first calls
_USUAL_STACK = 8 * 2**20
_MANY = 4

# What starts threads, by a part of the library's name, the most telling first.
_POOLS = (
    ("libgomp", "OpenMP"),
    ("libiomp", "OpenMP"),
    ("libomp", "OpenMP"),
    ("openblas", "BLAS"),
    ("libmkl", "BLAS"),
    ("libtbb", "TBB"),
    ("libcuda", "CUDA"),
    ("libc10", "torch"),
    ("libtorch", "torch"),
    ("libuv", "libuv"),
    ("python", "Python"),
)


@dataclass(frozen=True, kw_only=True)
class Thread:
    """A thread, the stretch of address space that is its stack, and the pool it belongs to."""

    tid: int
    name: str
    pool: str
    stack: Span | None


def threads(pid: int, maps: Sequence[Mapping], memory: ProcessMemory) -> list[Thread]:
    """All threads of a process. The main one comes first."""
    starts = [m.start for m in maps]
    size = proc.figure(f"/proc/{pid}/limits", "Max stack size") or _USUAL_STACK
    ids = proc.thread_ids(pid)
    stacks: dict[int, Span] = {}
    taken: set[int] = set()
    for tid in ids:
        pointer = _stack_pointer(pid, tid) if tid != pid else None
        stack = None if pointer is None else _stack(maps, starts, pointer, size)
        if stack is not None and stack[0] not in taken:
            taken.add(stack[0])
            stacks[tid] = stack
    # A thread that is running shows no stack pointer: it has one of the stacks left over.
    running = [tid for tid in ids if tid not in stacks and tid != pid]
    spare = [stack for stack in _guarded(maps, size) if stack[0] not in taken]
    stacks.update(zip(running, spare, strict=False))
    found = []
    for tid in ids:
        name = proc.text(f"/proc/{pid}/task/{tid}/comm").strip()
        pool = "main" if tid == pid else _pool_by_name(name)
        if not pool and tid in stacks:
            pool = _pool_by_stack(stacks[tid], maps, starts, memory)
        found.append(Thread(tid=tid, name=name, pool=pool or "other", stack=stacks.get(tid)))
    return found


def _pool_by_name(name: str) -> str:
    """Some libraries give their threads names."""
    if name.startswith("pt_"):
        return "torch"
    if name.startswith(("cuda", "CUDA")):
        return "CUDA"
    return ""


def _pool_by_stack(
    stack: Span, maps: Sequence[Mapping], starts: Sequence[int], memory: ProcessMemory
) -> str:
    top = stack[1]
    names: Counter[str] = Counter()
    # Only pages that are there: to read another would make it.
    for a, b in memory.present(max(stack[0], top - _FIRST_BYTES), top):
        for (word,) in struct.iter_unpack("<Q", memory.read(a, b - a)):
            at = bisect_right(starts, word) - 1
            if at >= 0 and "x" in maps[at].perms and maps[at].holds(word):
                names[maps[at].path.rsplit("/", 1)[-1]] += 1
    found: Counter[str] = Counter()
    for part, pool in _POOLS:
        found[pool] += sum(count for name, count in names.items() if part in name)
    if found["Python"] > _MANY * found["torch"]:  # a word or two may lead anywhere by chance
        del found["torch"]
    return next((pool for _, pool in _POOLS if found[pool]), "")


def _stack(maps: Sequence[Mapping], starts: Sequence[int], pointer: int, size: int) -> Span | None:
    at = bisect_right(starts, pointer) - 1
    if at < 0 or not maps[at].holds(pointer) or not maps[at].nameless:
        return None
    found = maps[at]
    usual = found.start + max(_USUAL_STACK, size)
    if at and _is_guard(maps[at - 1], found) and pointer < usual:
        # What lies above a stack may have become one mapping with it.
        return found.start, min(found.end, usual)
    return found.start, found.end


def _is_guard(before: Mapping, mapping: Mapping) -> bool:
    return before.forbidden and before.end == mapping.start and before.reserved <= 16 * PAGE


def _guarded(maps: Sequence[Mapping], size: int) -> list[Span]:
    """Nameless mappings that look like stacks: above a guard, and as large as stacks are here."""
    found = []
    for before, mapping in pairwise(maps):
        if not (_is_guard(before, mapping) and mapping.nameless and mapping.writable):
            continue
        if mapping.reserved + before.reserved >= size:
            found.append((mapping.start, min(mapping.end, mapping.start + size)))
    return found


def _stack_pointer(pid: int, tid: int) -> int | None:
    """Where a waiting thread's stack has come to; None for one that runs just now."""
    words = proc.text(f"/proc/{pid}/task/{tid}/syscall").split()
    return int(words[-2], 16) if len(words) >= 3 else None
