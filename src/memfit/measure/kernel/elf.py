"""Reads from a library's ELF file how much zeroed data it maps beside the file."""

from __future__ import annotations

import struct
from functools import cache

from memfit.measure.kernel.proc import PAGE

_HEAD = struct.Struct("<4sBB10xHHIQQQIHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_LOAD, _SIXTY_FOUR, _LITTLE = 1, 2, 1


@cache
def zeroed_bytes(path: str) -> int:
    """The pages of a library's zeroed data beside its file; 0 where it cannot be read as one."""
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD.size)
            magic, bits, order, *_ = fields = _HEAD.unpack(head)
            if magic != b"\x7fELF" or bits != _SIXTY_FOUR or order != _LITTLE:
                return 0
            offset, size, count = fields[7], fields[11], fields[12]
            file.seek(offset)
            table = file.read(size * count)
    except (OSError, struct.error):
        return 0
    most = 0
    for i in range(count):
        kind, _, _, at, _, in_file, in_memory, _ = _SEGMENT.unpack_from(table, i * size)
        if kind == _LOAD:
            most = max(most, _up(at + in_memory) - _up(at + in_file))
    return most


def _up(address: int) -> int:
    return -(-address // PAGE) * PAGE
