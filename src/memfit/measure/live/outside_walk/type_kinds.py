"""Classifies the types of another process, each read once, and checked before it is believed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from memfit.inside.object_kinds import ROLES
from memfit.measure.live.outside_walk import layouts as at
from memfit.measure.live.outside_walk.interpreter import Interpreter

# Forms of things whose memory is told as blocks.
DATA = ("array", "tensor", "map")
_MOST_BASIC, _MOST_ITEM = 2**16, 2**12
_DEEPEST = 4  # of classes of classes
# Types of C code that are known by their names.
_BY_NAME = {
    "numpy.ndarray": "array",
    "numpy.generic": "leaf",
    "numpy.dtype": "leaf",
    "torch._C.TensorBase": "tensor",
    "torch._C._TensorBase": "tensor",
    "torch._C.StorageBase": "storage",
    "torch.storage.UntypedStorage": "storage",
    "collections.deque": "deque",
    "mmap.mmap": "map",
    "builtin_function_or_method": "leaf",
    "ellipsis": "leaf",
    "array.array": "leaf",
    "_io.BytesIO": "leaf",
}


class TypeKind:
    """What the walk needs to know of a type; what takes long to find is found when it is asked."""

    def __init__(self, kinds: TypeKinds, address: int, words: list[int], line: list[int]) -> None:
        self._kinds = kinds
        self._words = words
        self._line = line
        layout = kinds.layout
        self.address = address
        self.flags, self.basic, self.item, dict_at = (
            words[n // 8] for n in (at.TYPE_FLAGS, at.TYPE_BASIC, at.TYPE_ITEM, at.TYPE_DICT_OFFSET)
        )
        self.form = kinds.form(line, self.flags)
        self.header = at.GC_HEADER * bool(self.flags & at.HAS_GC)
        if self.flags & (at.MANAGED_DICT | at.MANAGED_WEAKREFS):
            self.header += layout.pre_header
        self.managed = bool(self.flags & at.MANAGED_DICT)
        self.inline = layout.values_inline and bool(self.flags & at.INLINE_VALUES)
        self.dict_at = dict_at if 0 < dict_at < _MOST_BASIC else 0
        self.holds = self.form not in ("leaf", "storage", *DATA)

    @property
    def on_heap(self) -> bool:
        """Whether it was made at run time, as all classes of Python code are."""
        return bool(self.flags & at.HEAP_TYPE)

    @cached_property
    def full_name(self) -> str:
        return self._kinds.python.name(self._words[at.TYPE_NAME // 8])

    @property
    def name(self) -> str:
        return self.full_name.rpartition(".")[2]

    @cached_property
    def module(self) -> str:
        """The module in which it was written."""
        own = self._kinds.module(self.address, self._words) if self.on_heap else ""
        return own or self.full_name.rpartition(".")[0]

    @cached_property
    def keys(self) -> int:
        """The table of the names that its instances' attributes share."""
        return self._kinds.word(self.address + self._kinds.layout.cached_keys) * self.on_heap

    @cached_property
    def role(self) -> str:
        if self.form not in ("object", "dict", "list"):
            return ""
        return self._kinds.role(self._words[at.TYPE_MRO // 8])

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The names of a named tuple's elements."""
        named = self.form == "tuple" and self.on_heap
        return self._kinds.fields(self._words) if named else ()

    @cached_property
    def members(self) -> tuple[tuple[tuple[str, int], ...], int]:
        """The slots of its instances, and where those words end that have no names."""
        return self._kinds.members(self._line)

    @property
    def slots(self) -> tuple[tuple[str, int], ...]:
        return self.members[0]


class TypeKinds:
    """The types of a process that were met so far; `None` is what turned out to be no type."""

    def __init__(self, interpreter: Interpreter, roles: Mapping[str, str]) -> None:
        self.python = interpreter
        self.layout = interpreter.layout
        self._copy = interpreter.copy
        self._type = interpreter.types["PyType_Type"]
        self.roles = {**ROLES, **roles}
        self.known: dict[int, TypeKind | None] = {0: None}
        self._modules: dict[int, str] = {}
        self._of_c_code: dict[int, bool] = {}

    def __getitem__(self, address: int) -> TypeKind | None:
        if address not in self.known:
            self.known[address] = None  # a type that leads to itself is none
            self.known[address] = self._read(address)
        return self.known[address]

    def is_type(self, address: int, depth: int = 0) -> bool:
        """Whether a type lies here: its own type is `type`, or a class of classes."""
        words = self._copy.list_at(address, at.TYPE_WORDS)
        if not words or not words[at.TYPE_FLAGS // 8] & at.READY:
            return False
        if not at.HEAD <= words[at.TYPE_BASIC // 8] <= _MOST_BASIC:
            return False
        own = words[1]
        if own == self._type:
            return True
        above = self._copy.list_at(own, at.TYPE_WORDS) if depth < _DEEPEST else []
        return bool(
            above and above[at.TYPE_FLAGS // 8] & at.IS_TYPE and self.is_type(own, depth + 1)
        )

    def _read(self, address: int) -> TypeKind | None:
        if not self.is_type(address):
            return None
        words = self._copy.list_at(address, at.TYPE_WORDS)
        if words[at.TYPE_ITEM // 8] > _MOST_ITEM:
            return None
        kind = TypeKind(self, address, words, self._line(address))
        return kind if kind.full_name.isprintable() and kind.full_name else None

    def _line(self, address: int) -> list[int]:
        """A type and those that it is laid out as, down to `object`."""
        found = [address]
        while len(found) < 64:
            words = self._copy.list_at(found[-1] + at.TYPE_BASE, 1)
            if not words or not words[0] or words[0] in found:
                break
            found.append(words[0])
        return found

    def form(self, line: list[int], flags: int) -> str:
        for kind, form in (
            (at.IS_DICT, "dict"),
            (at.IS_LIST, "list"),
            (at.IS_TUPLE, "tuple"),
            (at.IS_TYPE, "class"),
            (at.IS_INT | at.IS_STR | at.IS_BYTES, "leaf"),
        ):
            if flags & kind:
                return form
        for address in line:
            if address in self.python.forms:
                return self.python.forms[address]
            name = self.python.name(self.word(address + at.TYPE_NAME))
            if name in _BY_NAME:
                return _BY_NAME[name]
        return "object"

    def module(self, address: int, words: list[int]) -> str:
        """The module in which a class was written, which is the first that it defines."""
        if address not in self._modules:
            names = self.python.named_items(words[at.TYPE_DICT // 8])
            value = next((value for name, value in names if name == "__module__"), 0)
            self._modules[address] = self._text(value)
        return self._modules[address]

    def members(self, line: list[int]) -> tuple[tuple[tuple[str, int], ...], int]:
        """The slots of a type's instances, and where those words end that have no names.

        A class written in Python adds slots and a dictionary; what a base of C has before them
        is read word by word.
        """
        found: dict[int, str] = {}
        plain = at.HEAD
        for address in reversed(line):
            words = self._copy.list_at(address, at.TYPE_WORDS)
            if not words:
                continue
            heap_type = bool(words[at.TYPE_FLAGS // 8] & at.HEAP_TYPE)
            if not heap_type or self._of_c(address, words):
                plain = max(plain, words[at.TYPE_BASIC // 8])
            count, members = words[2], words[at.TYPE_MEMBERS // 8]
            if heap_type and members and 0 < count < 1000:
                table = self._copy.list_at(members, at.MEMBER_WORDS * count)
                for i in range(0, len(table), at.MEMBER_WORDS):
                    name, kind, offset = table[i : i + 3]
                    if kind & 0xFFFFFFFF in at.OBJECT_MEMBERS and 0 < offset < _MOST_BASIC:
                        found[offset] = self.python.name(name)
        slots = sorted((offset, name) for offset, name in found.items())
        return tuple((name, offset) for offset, name in slots), plain

    def _of_c(self, address: int, words: list[int]) -> bool:
        """Whether a class that was made at run time is of C code: it has no `__module__` first."""
        if address not in self._of_c_code:
            first = next(self.python.named_items(words[at.TYPE_DICT // 8]), ("", 0))
            self._of_c_code[address] = first[0] != "__module__"
        return self._of_c_code[address]

    def fields(self, words: list[int]) -> tuple[str, ...]:
        """The names of a named tuple's elements."""
        names = self.python.named_items(words[at.TYPE_DICT // 8])
        fields = next((value for name, value in names if name == "_fields"), 0)
        return tuple(map(self._text, self.python.tuple_items(fields))) if fields else ()

    def role(self, mro: int) -> str:
        for address in self.python.tuple_items(mro):
            words = self._copy.list_at(address, at.TYPE_WORDS)
            if not words or not words[at.TYPE_FLAGS // 8] & at.HEAP_TYPE:
                continue
            module = self.module(address, words)
            name = self.python.name(words[at.TYPE_NAME // 8])
            role = self.roles.get(f"{module.partition('.')[0]}.{name}")
            if role:
                return role
        return ""

    def _text(self, address: int) -> str:
        is_text = address and self.python.type_of(address) == self.python.types["PyUnicode_Type"]
        return self.python.text(address) if is_text else ""

    def word(self, address: int) -> int:
        return (self._copy.list_at(address, 1) or [0])[0]
