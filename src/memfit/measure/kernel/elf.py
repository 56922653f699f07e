"""Reads a library's ELF file: how much zeroed data it maps beside the file, where symbols lie."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from functools import cache
from typing import BinaryIO

from memfit.measure.kernel.proc import PAGE

_HEAD = struct.Struct("<4sBB10xHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_LOAD, _SIXTY_FOUR, _LITTLE = 1, 2, 1
_SYMBOL_TABLES = (11, 2)  # what the loader needs, and, where that is not stripped, all symbols


@cache
def zeroed_bytes(path: str) -> int:
    """The pages of a library's zeroed data beside its file; 0 where it cannot be read as one."""
    try:
        with open(path, "rb") as file:
            loads = list(_loads(file))
    except (OSError, struct.error):
        return 0
    most = 0
    for _, _, _, at, _, in_file, in_memory, _ in loads:
        most = max(most, _up(at + in_memory) - _up(at + in_file))
    return most


def symbols(path: str, names: frozenset[str]) -> Mapping[str, tuple[int, int]]:
    """Where those of these symbols lie that a file has, and how many bytes each takes.

    Places are counted from the first byte of the file's first mapping.
    """
    try:
        with open(path, "rb") as file:
            base = min((at for _, _, _, at, *_ in _loads(file)), default=0) & -PAGE
            tables = list(_sections(file))
            for wanted in _SYMBOL_TABLES:
                found = {
                    name: (at - base, size)
                    for name, at, size in _symbols(file, tables, wanted, names)
                }
                if found:
                    return found
    except (OSError, struct.error, IndexError):
        pass
    return {}


def _head(file: BinaryIO) -> tuple[int, ...]:
    magic, bits, order, *fields = _HEAD.unpack(file.read(_HEAD.size))
    if magic != b"\x7fELF" or bits != _SIXTY_FOUR or order != _LITTLE:
        raise struct.error("no ELF file of 64 bits")
    return tuple(fields)


def _loads(file: BinaryIO) -> Iterator[tuple[int, ...]]:
    """The segments that are mapped."""
    file.seek(0)
    _, _, _, _, offset, _, _, _, size, count, _, _, _ = _head(file)
    for at in range(count):
        file.seek(offset + at * size)
        segment = _SEGMENT.unpack(file.read(_SEGMENT.size))
        if segment[0] == _LOAD:
            yield segment


def _sections(file: BinaryIO) -> Iterator[tuple[int, ...]]:
    file.seek(0)
    _, _, _, _, _, offset, _, _, _, _, size, count, _ = _head(file)
    file.seek(offset)
    table = file.read(size * count)
    for at in range(count):
        yield _SECTION.unpack_from(table, at * size)


def _symbols(
    file: BinaryIO, sections: list[tuple[int, ...]], wanted: int, names: frozenset[str]
) -> Iterator[tuple[str, int, int]]:
    for _, kind, _, _, offset, size, link, *_ in sections:
        if kind != wanted:
            continue
        file.seek(sections[link][4])
        texts = file.read(sections[link][5])
        # The text of each name that is wanted, found once, instead of all names one by one.
        places = {at: name for name in names for at in _places(texts, name.encode() + b"\0")}
        file.seek(offset)
        for text, _, _, section, at, length in _SYMBOL.iter_unpack(file.read(size)):
            if section and text in places:
                yield places[text], at, length


def _places(texts: bytes, wanted: bytes) -> Iterator[int]:
    """Where a text ends so; it may be the end of a longer name too, which has another place."""
    at = texts.find(wanted)
    while at >= 0:
        yield at
        at = texts.find(wanted, at + 1)


def _up(address: int) -> int:
    return -(-address // PAGE) * PAGE
