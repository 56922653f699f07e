"""What objects of another process hold, read for many objects of one type at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from memfit.measure.live.outside_walk import layouts as at
from memfit.measure.live.outside_walk.interpreter import Frame, Interpreter
from memfit.measure.live.outside_walk.memory_copy import Addresses, Indices, Words
from memfit.measure.live.outside_walk.type_kinds import TypeKind

NUMBERED = 8  # elements of so short a container have their own places
_NAMED_KEYS, _NUMBERED_KEYS = 256, 8
_SAMPLED_FROM, _LEAST_SAMPLED = 400_000, 4_000  # elements; a sample has half as many
_MOST_FRAMES = 2000
_DISTINCT = 0.95  # of a sample, so that what it stands for is as many
NOBODY = np.zeros(0, dtype=np.uint64)


@dataclass(frozen=True, kw_only=True)
class Held:
    """Things that some objects hold: where they are, and by which object each (its row).

    `step` is the way to each of them: an attribute, or `[3]`; none where they are the object's own
    business. With `keys`, that is told by the key of each. Each stands for `weight` like it.
    """

    addresses: Addresses
    rows: Indices
    step: str = ""
    attribute: bool = False
    many: bool = False
    keys: Addresses | None = None
    weight: int = 1


class Referents:
    """Reads what objects hold."""

    def __init__(self, python: Interpreter) -> None:
        self._python = python
        self._copy = python.copy
        self._layout = python.layout
        self._sampled_from = _SAMPLED_FROM
        self._names: dict[int, str | None] = {}
        self._attributes: dict[int, list[str]] = {}
        self._text, self._int = (python.types[n] for n in ("PyUnicode_Type", "PyLong_Type"))

    def afford(self, objects: float) -> None:
        """Take samples of containers which have more elements than there is time for."""
        self._sampled_from = int(min(_SAMPLED_FROM, max(_LEAST_SAMPLED, objects)))

    def of(self, kind: TypeKind, found: Addresses, *, naming: bool) -> Iterator[Held]:
        """What these objects hold, but for their attributes; without names where nobody asks."""
        form = kind.form
        if form in ("list", "tuple"):
            yield from self._sequence(kind, found)
        elif form == "dict":
            yield from self.entries(found)
        elif form == "set":
            yield from self._set(found)
        elif form == "deque":
            yield from self._deque(found)
        elif form == "cell":
            yield self._words(found, (at.CELL,))
        elif form == "method":
            yield self._words(found, (at.METHOD_FUNCTION, at.METHOD_SELF))
        elif form == "function":
            yield from self._function(found, naming)
        elif form == "code":
            yield self._words(found, at.CODE_HELD)
        elif form == "generator":
            yield from self._generator(kind, found)
        elif form == "module":
            yield self._words(found, (at.MODULE_DICT,))
        elif form == "class":
            yield self._words(found, (at.TYPE_DICT, at.TYPE_MRO))
        elif form in ("object", "memoryview"):
            named = {offset for _, offset in kind.slots}
            plain = [n for n in range(at.HEAD, kind.members[1], 8) if n not in named]
            if plain and len(plain) <= 64:
                yield self._words(found, tuple(plain))

    def attributes(self, kind: TypeKind, found: Addresses) -> Iterator[Held]:
        """The attributes of these objects; those in dictionaries come as these, with no step."""
        for name, offset in kind.slots:
            values = self._copy.word(found + np.uint64(offset))
            yield _held(values, np.arange(len(found)), step=name, attribute=True)
        if kind.managed:
            yield from self._managed(kind, found)
        elif kind.dict_at:
            dicts = self._copy.word(found + np.uint64(kind.dict_at))
            yield _held(dicts, np.arange(len(found)), attribute=True)

    def _managed(self, kind: TypeKind, found: Addresses) -> Iterator[Held]:
        layout = self._layout
        rows = np.arange(len(found))
        dicts = self._copy.word(found - np.uint64(layout.dict_before))
        if layout.values_inline:
            values = found + np.uint64(kind.basic)
            valid = self._copy.word(values) >> np.uint64(24) & np.uint64(0xFF) == np.uint64(1)
            with_values = valid if kind.inline else np.zeros(len(found), dtype=bool)
        elif layout.values_tagged:
            with_values = (dicts & np.uint64(1)) == np.uint64(1)
            values = dicts + np.uint64(1)
            dicts = np.where(with_values, np.uint64(0), dicts)
        else:
            values = self._copy.word(found - np.uint64(layout.values_before))
            with_values = values != 0
        yield _held(dicts, rows, attribute=True)
        names = self.attribute_names(kind.keys)
        if names and with_values.any():
            own = rows[with_values]
            start = values[with_values] + np.uint64(layout.values_head)
            table = self._copy.words(start, len(names))
            for i, name in enumerate(names):
                yield _held(table[:, i], own, step=name, attribute=True)

    def attribute_names(self, keys: int) -> list[str]:
        """The names that the instances of a class share."""
        if keys not in self._attributes:
            head = self._copy.list_at(keys, 4) if keys else []
            index, count = (head[1] >> 8 & 0xFF, head[at.KEYS_ENTRIES]) if head else (0, 0)
            names: list[str] = []
            if head and index < 20 and 0 < count <= 64 and head[1] >> 16 & 0xFF == at.SPLIT_KEYS:
                entries = self._copy.list_at(keys + at.KEYS_HEAD + (1 << index), 2 * count)
                names = [self._python.text(key) if key else "" for key in entries[::2]]
            self._attributes[keys] = names
        return self._attributes[keys]

    def key_step(self, key: int, among: int) -> str:
        """The step to a dictionary's value by its key; nothing where that has no short one."""
        name = self._name(key)
        if name is None or (name[0] in "'\"" and among > _NAMED_KEYS):
            return ""
        return f"[{name}]"[:60] if name[0] in "'\"" or among <= _NUMBERED_KEYS else ""

    def key_text(self, key: int) -> str:
        """The name that a key is, for an attribute."""
        return self._python.text(key) if self._python.type_of(key) == self._text else ""

    def _name(self, key: int) -> str | None:
        if key not in self._names:
            own = self._python.type_of(key)
            text = repr(self._python.text(key)) if own == self._text else None
            if own == self._int:
                words = self._copy.list_at(key, 4)
                small = words and (words[2] <= 1 if self._python.version < (3, 12) else True)
                text = str(words[3] & 0x3FFFFFFF) if small else None
            self._names[key] = text
        return self._names[key]

    def entries(self, found: Addresses) -> Iterator[Held]:
        """Keys, then values by key, of dictionaries."""
        words = self._copy.words(found, at.DICT_WORDS)
        keys, apart = words[:, at.DICT_KEYS], words[:, at.DICT_VALUES]
        head = self._copy.words(keys, 4)
        index = (head[:, 1] >> np.uint64(8)) & np.uint64(0xFF)
        kind = (head[:, 1] >> np.uint64(16)) & np.uint64(0xFF)
        start = keys + np.uint64(at.KEYS_HEAD) + (np.uint64(1) << np.minimum(index, np.uint64(40)))
        for general in (True, False):
            step = 24 if general else 16
            right = (kind == np.uint64(at.GENERAL_KEYS)) == general
            right &= (index < 40) & (kind <= np.uint64(at.SPLIT_KEYS)) & (words[:, 2] > 0)
            counts = np.where(right, self._counts(head[:, at.KEYS_ENTRIES], start, step), 0)
            for rows, order, weight in _pieces(counts, self._sampled_from):
                place = start[rows] + (order * step).astype(np.uint64)
                pairs = self._copy.words(place + np.uint64(step - 16), 2)
                own_keys, values = pairs[:, 0], pairs[:, 1]
                split = apart[rows] != 0
                if split.any():
                    to = apart[rows[split]] + np.uint64(self._layout.values_head)
                    values[split] = self._copy.word(to + (8 * order[split]).astype(np.uint64))
                used = (own_keys != 0) & (values != 0)
                own_keys, values, holders = own_keys[used], values[used], rows[used]
                yield Held(addresses=own_keys, rows=holders, weight=weight)
                yield Held(addresses=values, rows=holders, keys=own_keys, weight=weight)

    def lengths(self, kind: TypeKind, found: Addresses) -> Indices:
        """How many elements these containers say that they have."""
        if kind.form not in ("list", "tuple", "dict", "set", "deque"):
            return np.zeros(len(found), dtype=np.int64)
        said = self._copy.word(found + np.uint64(24 if kind.form == "set" else at.LENGTH))
        return np.where(said < np.uint64(2**40), said, np.uint64(0)).astype(np.int64)

    def _sequence(self, kind: TypeKind, found: Addresses) -> Iterator[Held]:
        words = self._copy.words(found, 4)
        items = words[:, 3] if kind.form == "list" else found + np.uint64(at.TUPLE_ITEMS)
        counts = self._counts(words[:, 2], items, 8)
        if kind.fields:
            for i, name in enumerate(kind.fields):
                own = np.flatnonzero(counts > i)
                values = self._copy.word(items[own] + np.uint64(8 * i))
                yield _held(values, own, step=name, attribute=True)
            return
        for i in range(min(NUMBERED, int(counts.max(initial=0)))):
            own = np.flatnonzero((counts > i) & (counts <= NUMBERED))
            if len(own):
                yield _held(self._copy.word(items[own] + np.uint64(8 * i)), own, step=f"[{i}]")
        for rows, order, weight in _pieces(
            np.where(counts > NUMBERED, counts, 0), self._sampled_from
        ):
            values = self._copy.word(items[rows] + (8 * order).astype(np.uint64))
            yield _held(values, rows, many=True, weight=weight)

    def _set(self, found: Addresses) -> Iterator[Held]:
        words = self._copy.words(found, 6)
        counts = self._counts(words[:, at.SET_MASK] + np.uint64(1), words[:, at.SET_TABLE], 16)
        for rows, order, weight in _pieces(counts, self._sampled_from):
            place = words[rows, at.SET_TABLE] + (16 * order).astype(np.uint64)
            yield _held(self._copy.word(place), rows, many=True, weight=weight)

    def _deque(self, found: Addresses) -> Iterator[Held]:
        for row, address in enumerate(found.tolist()):
            words = self._copy.list_at(address, 7)
            if not words or not 0 < words[2] < 2**32:
                continue
            left, first, block = words[2], words[at.DEQUE_INDEX], words[at.DEQUE_LEFT]
            parts: list[int] = []
            while left > 0 and 0 <= first < at.DEQUE_BLOCK:
                data = self._copy.list_at(block, at.DEQUE_BLOCK + 2)
                if not data:
                    break
                parts += data[1 + first : 1 + min(at.DEQUE_BLOCK, first + left)]
                left -= at.DEQUE_BLOCK - first
                first, block = 0, data[-1]
            things = np.array(parts, dtype=np.uint64)
            yield _held(things, np.full(len(things), row), many=True)

    def _function(self, found: Addresses, naming: bool) -> Iterator[Held]:
        words = self._copy.words(found, at.FUNCTION_WORDS)
        rows = np.arange(len(found))
        if not naming:
            yield _held(words[:, at.FUNCTION_CLOSURE], rows)
        for column in (at.FUNCTION_CODE, 4, 5, 7, 8, 10, at.FUNCTION_DICT):
            yield _held(words[:, column], rows)
        closures = np.flatnonzero(words[:, at.FUNCTION_CLOSURE] != 0) if naming else rows[:0]
        codes = words[closures, at.FUNCTION_CODE]
        for code in np.unique(codes).tolist():
            own = closures[codes == np.uint64(code)]
            tuples = words[own, at.FUNCTION_CLOSURE]
            yield _held(tuples, own, step="\0")
            for i, name in enumerate(self._python.free_names(code)):
                cells = self._copy.word(tuples + np.uint64(at.TUPLE_ITEMS + 8 * i))
                values = self._copy.word(cells + np.uint64(at.CELL))
                yield _held(values, own, step=name, attribute=True)

    def _generator(self, kind: TypeKind, found: Addresses) -> Iterator[Held]:
        yield self._words(found, tuple(range(at.HEAD, max(at.HEAD, kind.basic - 72), 8)))
        for row, address in enumerate(found[:_MOST_FRAMES].tolist()):
            start = address + kind.basic - 8 * self._layout.frame_locals
            words = self._copy.list_at(start, 10)
            code = words[self._layout.frame_code] if words else 0
            if self._python.type_of(code) != self._python.types["PyCode_Type"]:
                continue
            called = self._python.code_names(code)[0].rpartition(".")[2]
            frame = Frame(code=code, locals=address + kind.basic, globals=0)
            for name, value, cell in self._python.variables(frame):
                where = (self._copy.list_at(value + at.CELL, 1) or [0])[0] if cell else value
                one = np.array([where], dtype=np.uint64)
                yield _held(one, np.array([row]), step=f"{called}().{name}", attribute=True)

    def _words(self, found: Addresses, offsets: tuple[int, ...]) -> Held:
        """Some words of each object, as far as something may be there."""
        parts = [self._copy.word(found + np.uint64(offset)) for offset in offsets]
        rows = np.tile(np.arange(len(found)), len(parts))
        return _held(np.concatenate(parts) if parts else NOBODY, rows)

    def _counts(self, said: Words, start: Addresses, step: int) -> Indices:
        """How many elements there may be: what is said, where the memory is as large."""
        room = self._copy.room(start) // step
        return np.where(said <= room.astype(np.uint64), said, np.uint64(0)).astype(np.int64)


def _held(
    addresses: Addresses,
    rows: Indices,
    *,
    step: str = "",
    attribute: bool = False,
    many: bool = False,
    weight: int = 1,
) -> Held:
    there = addresses != 0
    if not there.all():
        addresses, rows = addresses[there], rows[there]
    return Held(
        addresses=addresses, rows=rows, step=step, attribute=attribute, many=many, weight=weight
    )


def _pieces(counts: Indices, most: int) -> Iterator[tuple[Indices, Indices, int]]:
    """The elements of containers, as pairs of rows and numbers; of long ones a sample.

    Each of a sample stands for several, which the last number says.
    """
    long, sample = np.flatnonzero(counts > most), most // 2
    for row in long.tolist():
        weight = -(-int(counts[row]) // sample)
        spread = np.random.default_rng(0).integers(0, weight, size=sample)
        order = np.arange(sample) * weight + spread
        order = order[order < counts[row]]
        yield np.full(len(order), row), order, weight
    counts = np.where(counts > most, 0, counts)
    ends = np.cumsum(counts)
    first = 0
    while first < len(counts) and ends[-1] > (ends[first - 1] if first else 0):
        # So many containers as have a bounded number of elements together.
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + 2 * _SAMPLED_FROM, "right")))
        some = counts[first:last]
        rows = np.repeat(np.arange(first, min(last, len(counts))), some)
        if len(rows):
            yield rows, np.arange(len(rows)) - (ends[rows] - counts[rows] - before), 1
        first = last
