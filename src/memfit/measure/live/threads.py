"""The threads of a process: their names, their stacks, and the library that started each.

A thread's stack is the mapping that holds its stack pointer. The first words that a thread wrote
there lead back to the library that started it, so that a pool of threads can be named from outside.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from memfit.measure.kernel.mappings import Mapping, Pagemap
from memfit.measure.kernel.proc import PAGE
from memfit.measure.kernel.process_memory import ProcessMemory

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
    stack: tuple[int, int] | None


def threads(pid: int, maps: Sequence[Mapping], pages: Pagemap) -> list[Thread]:
    """All threads of a process. The main one comes first."""
    starts = [m.start for m in maps]
    size = _stack_size(pid)
    found = []
    taken: set[int] = set()
    for tid in _thread_ids(pid):
        name = _text(f"/proc/{pid}/task/{tid}/comm").strip()
        pointer = _stack_pointer(pid, tid)
        stack = None if pointer is None or tid == pid else _stack(maps, starts, pointer, size)
        if stack and stack[0] in taken:
            stack = None
        if stack:
            taken.add(stack[0])
        pool = "main" if tid == pid else ""
        found.append(Thread(tid=tid, name=name, pool=pool, stack=stack))
    spare = iter(s for s in _guarded(maps, size) if s[0] not in taken)
    with ProcessMemory(pid) as memory:
        known = [_with_stack(thread, spare) for thread in found]
        return [_with_pool(thread, maps, starts, memory, pages) for thread in known]


def _with_stack(thread: Thread, spare: Iterable[tuple[int, int]]) -> Thread:
    """A thread that is running shows no stack pointer: it has one of the stacks left over."""
    if thread.stack or thread.pool == "main":
        return thread
    stack = next(iter(spare), None)
    return Thread(tid=thread.tid, name=thread.name, pool=thread.pool, stack=stack)


def _with_pool(
    thread: Thread,
    maps: Sequence[Mapping],
    starts: Sequence[int],
    memory: ProcessMemory,
    pages: Pagemap,
) -> Thread:
    if thread.pool:
        return thread
    pool = _pool_by_name(thread.name)
    if not pool and thread.stack:
        pool = _pool_by_stack(thread.stack, maps, starts, memory, pages)
    return Thread(tid=thread.tid, name=thread.name, pool=pool or "other", stack=thread.stack)


def _pool_by_name(name: str) -> str:
    """Some libraries give their threads names."""
    if name.startswith("pt_"):
        return "torch"
    if name.startswith(("cuda", "CUDA")):
        return "CUDA"
    return ""


def _pool_by_stack(
    stack: tuple[int, int],
    maps: Sequence[Mapping],
    starts: Sequence[int],
    memory: ProcessMemory,
    pages: Pagemap,
) -> str:
    top = stack[1]
    names: Counter[str] = Counter()
    # Only pages that are there: to read another would make it.
    for a, b in pages.present(max(stack[0], top - _FIRST_BYTES), top) if pages.readable else ():
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


def _stack(
    maps: Sequence[Mapping], starts: Sequence[int], pointer: int, size: int
) -> tuple[int, int] | None:
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


def _guarded(maps: Sequence[Mapping], size: int) -> list[tuple[int, int]]:
    """Nameless mappings that look like stacks: above a guard, and as large as stacks are here."""
    found = []
    for before, mapping in pairwise(maps):
        if not (_is_guard(before, mapping) and mapping.nameless and mapping.writable):
            continue
        if mapping.reserved + before.reserved >= size:
            found.append((mapping.start, min(mapping.end, mapping.start + size)))
    return found


def _stack_size(pid: int) -> int:
    for line in _text(f"/proc/{pid}/limits").splitlines():
        words = line.removeprefix("Max stack size").split()
        if line.startswith("Max stack size") and words and words[0].isdigit():
            return int(words[0])
    return _USUAL_STACK


def _stack_pointer(pid: int, tid: int) -> int | None:
    """Where a waiting thread's stack has come to; None for one that runs just now."""
    words = _text(f"/proc/{pid}/task/{tid}/syscall").split()
    return int(words[-2], 16) if len(words) >= 3 else None


def _thread_ids(pid: int) -> list[int]:
    try:
        return sorted(int(name) for name in os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return []


def _text(path: str) -> str:
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""
