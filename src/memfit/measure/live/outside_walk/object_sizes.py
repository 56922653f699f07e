"""How many bytes objects of another process take, as their allocator sees them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from memfit.measure.live.outside_walk import layouts as at
from memfit.measure.live.outside_walk.interpreter import Interpreter
from memfit.measure.live.outside_walk.memory_copy import Addresses, Indices, Words
from memfit.measure.live.outside_walk.type_kinds import TypeKind

SMALL = 512  # what Python's own allocator takes
_MOST = 2**40
_MOST_BLOCKS = 2**24
_DEQUE_BLOCK_BYTES = 8 * (at.DEQUE_BLOCK + 2)


class ObjectSizes:
    """Sizes of many objects of one type at a time."""

    def __init__(self, python: Interpreter) -> None:
        self._copy = python.copy
        self._layout = python.layout
        self._new = python.version >= (3, 12)
        self._int, self._text = python.types["PyLong_Type"], python.types["PyUnicode_Type"]
        self._bool = python.types["PyBool_Type"]
        self._byte_array = python.types["PyByteArray_Type"]

    def parts(self, kind: TypeKind, found: Addresses) -> Iterator[Indices]:
        """What each of these objects takes itself, then what its tables take."""
        own = np.full(len(found), kind.basic, dtype=np.int64)
        if kind.address == self._text:
            own = self._texts(found)
        elif kind.address in (self._int, self._bool):
            own = 24 + 4 * np.maximum(1, self._digits(found))
        elif kind.item and kind.form not in ("class", "array", "list", "deque"):
            own += kind.item * _bounded(self._copy.word(found + np.uint64(at.LENGTH)))
        if kind.inline:
            own += self._values(kind)
        yield self._taken(own + kind.header, found)
        if kind.form == "list":
            words = self._copy.words(found, 5)
            yield self._taken(8 * _bounded(words[:, 4]), words[:, 3])
        elif kind.form == "dict":
            yield self._tables(found)
        elif kind.form == "set":
            words = self._copy.words(found, at.SET_SMALL_TABLE)
            table = words[:, at.SET_TABLE]
            apart = table != found + np.uint64(8 * at.SET_SMALL_TABLE + 8)
            entries = np.where(apart, _bounded(words[:, at.SET_MASK]) + 1, 0)
            yield self._taken(16 * entries, table)
        elif kind.form == "deque":
            length = _bounded(self._copy.word(found + np.uint64(at.LENGTH)))
            blocks = length // at.DEQUE_BLOCK + 1
            yield np.where(blocks < _MOST_BLOCKS, blocks, 0) * _DEQUE_BLOCK_BYTES
        elif kind.address == self._byte_array:
            words = self._copy.words(found, 6)
            yield self._taken(_bounded(words[:, 3]), words[:, 4] & ~np.uint64(7))
        elif kind.managed and not self._layout.values_inline:
            yield self._values_apart(kind, found)

    def _taken(self, amounts: Indices, places: Addresses) -> Indices:
        """What is taken at each place; nothing where there is not as much memory."""
        room = self._copy.room(places)
        return np.where(amounts <= room, (amounts + 15) & ~15, 0)

    def _texts(self, found: Addresses) -> Indices:
        words = self._copy.words(found, 5)
        length, state = _bounded(words[:, 2]), words[:, 4].astype(np.int64)
        width, plain = state >> 2 & 7, state >> 6 & 1
        head = self._layout.text_head
        more = 24 if head == 48 else 16
        total = head + np.where(plain, 0, more) + (length + 1) * np.maximum(1, width)
        return np.asarray(total, dtype=np.int64)

    def _digits(self, found: Addresses) -> Indices:
        said = self._copy.word(found + np.uint64(at.LENGTH))
        if self._new:
            return _bounded(said >> np.uint64(3))
        return _bounded(np.abs(said.view(np.int64)).view(np.uint64))

    def _tables(self, found: Addresses) -> Indices:
        """Keys and values of dictionaries; those that instances of a class share count once."""
        words = self._copy.words(found, at.DICT_WORDS)
        keys, apart = words[:, at.DICT_KEYS], words[:, at.DICT_VALUES] != 0
        head = self._copy.words(keys, 4)
        log_size = np.minimum(head[:, 1] & np.uint64(0xFF), np.uint64(40)).astype(np.int64)
        index = np.minimum(head[:, 1] >> np.uint64(8) & np.uint64(0xFF), np.uint64(40))
        general = head[:, 1] >> np.uint64(16) & np.uint64(0xFF) == np.uint64(at.GENERAL_KEYS)
        usable = (np.int64(1) << log_size) * 2 // 3
        table = 32 + (np.int64(1) << index.astype(np.int64)) + np.where(general, 24, 16) * usable
        table = np.where(log_size <= 2, 0, table)  # the empty one is there once for all
        values = 8 * (_bounded(head[:, 2] & np.uint64(0xFFFF)) + _bounded(head[:, 3]))
        return self._taken(np.where(apart, values, table), keys)

    def _values(self, kind: TypeKind) -> int:
        """What the values of an instance take, which are as many as its class has room for."""
        head = self._copy.list_at(kind.keys, 4) if kind.keys else []
        count = head[2] + head[3] if head else 0
        return -(-(count + 2) // 8) * 8 + 8 * count if 0 < count <= 64 else 0

    def _values_apart(self, kind: TypeKind, found: Addresses) -> Indices:
        word = self._copy.word(found - np.uint64(self._layout.values_before))
        there = (word & np.uint64(1)) != 0 if self._layout.values_tagged else word != 0
        return np.where(there, (self._values(kind) + 15) & ~15, 0)


def _bounded(said: Words) -> Indices:
    """A number that makes sense as one of elements, or none."""
    return np.where(said < np.uint64(_MOST), said, np.uint64(0)).astype(np.int64)
