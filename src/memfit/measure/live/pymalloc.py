"""Finds Python's own pools of small objects in a process, from outside.

CPython keeps objects of up to 512 bytes in pools of 16 KiB. Each pool begins with a header whose
fields must agree with each other, so that a pool is recognised for certain, and tells how many of
its blocks are in use.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from memfit.measure.kernel.mappings import Mapping
from memfit.measure.kernel.process_memory import ProcessMemory, Span

POOL = 16 * 1024
_ALIGN, _CLASSES = 16, 32
_HEADER = struct.Struct("<I4xQQQIIII")  # count, free, next, previous, arena, class, used, last
_MOST = 2048  # pools looked at before a mapping is believed to hold none
_READ = 64  # pools read at once


def pools(mapping: Mapping, memory: ProcessMemory) -> tuple[list[Span], int]:
    """Where Python's pools lie within a mapping, and how much of them is in use, in bytes."""
    count = mapping.end // POOL + -mapping.start // POOL
    if count > _MOST:
        heads = (memory.read(at, _HEADER.size) for at in _sample(mapping, memory, count))
        if not any(map(_in_use, heads)):
            return [], 0
    spans: list[Span] = []
    used = 0
    for pool, amount in _all(mapping, memory):
        used += amount
        if spans and spans[-1][1] == pool:
            spans[-1] = spans[-1][0], pool + POOL
        else:
            spans.append((pool, pool + POOL))
    return spans, used


def _sample(mapping: Mapping, memory: ProcessMemory, count: int) -> Iterator[int]:
    step = -(-count // _MOST) * POOL
    for a, b in memory.present(mapping.start, mapping.end):
        yield from range(-(-a // step) * step, b - _HEADER.size, step)


def _all(mapping: Mapping, memory: ProcessMemory) -> Iterator[tuple[int, int]]:
    for a, b in memory.present(mapping.start, mapping.end):
        for start in range(-(-a // POOL) * POOL, b, _READ * POOL):
            data = memory.read(start, min(b - start, _READ * POOL))
            for offset in range(0, len(data), POOL):
                if amount := _in_use(data, offset):
                    yield start + offset, amount


def _in_use(data: bytes, offset: int = 0) -> int:
    """The bytes in use of the pool that begins here; 0 where none does."""
    if len(data) < offset + _HEADER.size:
        return 0
    count, _, _, _, _, size_class, used, last = _HEADER.unpack_from(data, offset)
    size = (size_class + 1) * _ALIGN
    right = size_class < _CLASSES and last == POOL - size and used <= POOL
    return int(count * size) if right and 0 < count * size <= POOL else 0
