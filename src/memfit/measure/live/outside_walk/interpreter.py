"""Finds the interpreter in a process from outside: its version, its types, modules and frames.

Symbols of the program or of libpython say where the interpreter's state and the built-in types lie.
From there on everything is recognised by what it must be: the modules are the dictionary that has
`sys`, `builtins` and `__main__`, a thread's state names the interpreter that it belongs to.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from memfit.measure.kernel.elf import symbols
from memfit.measure.kernel.mappings import Mapping
from memfit.measure.live.outside_walk import layouts as at
from memfit.measure.live.outside_walk.layouts import LAYOUTS, Layout
from memfit.measure.live.outside_walk.memory_copy import MemoryCopy

# User programs have no address above this; a sum of a word that was misread may be larger still.
_ADDRESSES = 1 << 63

# The built-in types that the walk must know, by the symbol of each.
TYPES = {
    "PyType_Type": "type",
    "PyDict_Type": "dict",
    "PyModule_Type": "module",
    "PyFunction_Type": "function",
    "PyMethod_Type": "method",
    "PyCell_Type": "cell",
    "PyCode_Type": "code",
    "PyGen_Type": "generator",
    "PyCoro_Type": "generator",
    "PyAsyncGen_Type": "generator",
    "PyFrame_Type": "skip",
    "PyTraceBack_Type": "skip",
    "PySet_Type": "set",
    "PyFrozenSet_Type": "set",
    "PyLong_Type": "leaf",
    "PyBool_Type": "leaf",
    "PyFloat_Type": "leaf",
    "PyComplex_Type": "leaf",
    "PyUnicode_Type": "leaf",
    "PyBytes_Type": "leaf",
    "PyByteArray_Type": "leaf",
    "_PyNone_Type": "leaf",
    "_PyNotImplemented_Type": "leaf",
    "PyEllipsis_Type": "leaf",
    "PyRange_Type": "leaf",
    "PySlice_Type": "leaf",
    "PyCFunction_Type": "leaf",
    "PyCMethod_Type": "leaf",
    "PyWrapperDescr_Type": "leaf",
    "PyMethodDescr_Type": "leaf",
    "PyClassMethodDescr_Type": "leaf",
    "PyGetSetDescr_Type": "leaf",
    "PyMemberDescr_Type": "leaf",
    "_PyWeakref_RefType": "leaf",
    "_PyWeakref_ProxyType": "leaf",
    "_PyWeakref_CallableProxyType": "leaf",
    "PyCapsule_Type": "leaf",
    "PyMemoryView_Type": "memoryview",
}
_RUNTIME, _VERSION = "_PyRuntime", "Py_Version"
_WANTED = frozenset({*TYPES, _RUNTIME, _VERSION})
_STATE_WORDS = 8192  # of an interpreter's state, in which its first thread is looked for
_MOST_THREADS, _MOST_FRAMES = 4096, 10_000
_FRAME_WORDS, _TRIES = 10, 16  # of a frame; of a thread's frames, which come and go
_AT_ONCE = 256
_MOST_RUNTIME = 2**22
_MODULES = ("sys", "builtins", "__main__")  # that are always there
_LONGEST_TEXT = 4096


class NotWalkable(Exception):
    """No interpreter is found that can be walked from outside; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A running function: its code, where its variables are, and its module's dictionary."""

    code: int
    locals: int
    globals: int


class Interpreter:
    """The interpreter of a process."""

    def __init__(self, pid: int, maps: Sequence[Mapping], copy: MemoryCopy) -> None:
        self.copy = copy
        base, found = _symbols(pid, maps)
        self.forms = {base + found[n][0]: form for n, form in TYPES.items() if n in found}
        self.types = {n: base + place for n, (place, _) in found.items() if n in TYPES}
        version = (copy.list_at(base + found[_VERSION][0], 1) or [0])[0]
        self.version = version >> 24 & 0xFF, version >> 16 & 0xFF
        if self.version not in LAYOUTS:
            raise NotWalkable(f"the layout of Python {self.version[0]}.{self.version[1]}")
        self.layout: Layout = LAYOUTS[self.version]
        start, size = found[_RUNTIME]
        self._runtime = base + start, min(size, _MOST_RUNTIME)
        self.modules = self._modules()

    def type_of(self, address: int) -> int:
        words = self.copy.list_at(address, 2)
        return words[1] if words else 0

    def text(self, address: int) -> str:
        """A str's text; nothing where there is none, or where it is not a short one."""
        head = self.layout.text_head
        words = self.copy.list_at(address, head // 8)
        if not words or not 0 <= words[2] <= _LONGEST_TEXT:
            return ""
        length, state = words[2], words[4]
        width, compact, ascii_only = state >> 2 & 7, state >> 5 & 1, state >> 6 & 1
        if not compact or width not in (1, 2, 4):
            return ""
        start = address + (head if ascii_only else head + _wide(head))
        data = self.copy.bytes_at(start, length * width)
        encoding = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}[width]
        return data.decode(encoding, errors="replace")

    def name(self, address: int) -> str:
        """A text of C."""
        data = self.copy.bytes_at(address, 256) if address else b""
        return data.partition(b"\0")[0].decode(errors="replace")

    def items(self, address: int, most: int = 2**24) -> Iterator[tuple[int, int]]:
        """Keys and values of one dictionary, by address; for a few dictionaries only."""
        words = self.copy.list_at(address, at.DICT_WORDS)
        keys = words[at.DICT_KEYS] if words else 0
        head = self.copy.list_at(keys, 4) if keys else []
        if not head or not 0 <= head[at.KEYS_ENTRIES] < 2**24:
            return
        index, kind, count = head[1] >> 8 & 0xFF, head[1] >> 16 & 0xFF, head[at.KEYS_ENTRIES]
        if index > 40 or kind > at.SPLIT_KEYS:
            return
        count = min(count, most)
        step = 3 if kind == at.GENERAL_KEYS else 2
        entries = self.copy.list_at(keys + at.KEYS_HEAD + (1 << index), count * step)
        values = words[at.DICT_VALUES]
        apart = self.copy.list_at(values + self.layout.values_head, count) if values else []
        for i in range(0, len(entries), step):
            key, value = entries[i + step - 2], entries[i + step - 1]
            if values:
                value = apart[i // step] if i // step < len(apart) else 0
            if key and value:
                yield key, value

    def named_items(self, address: int) -> Iterator[tuple[str, int]]:
        """As `items`, of those whose keys are texts."""
        text = self.types["PyUnicode_Type"]
        for key, value in self.items(address):
            if self.type_of(key) == text:
                yield self.text(key), value

    def tuple_items(self, address: int) -> list[int]:
        words = self.copy.list_at(address, 3)
        if not words or not 0 < words[2] < 10_000:
            return []
        return self.copy.list_at(address + at.TUPLE_ITEMS, words[2])

    def stacks(self) -> Iterator[list[Frame]]:
        """The running functions of each thread, the innermost first."""
        for thread in self._threads():
            frames: list[Frame] = []
            for address, words in self._frames(thread):
                start = address + 8 * self.layout.frame_locals
                holder, code = words[self.layout.frame_globals], words[self.layout.frame_code]
                frames.append(Frame(code=code, locals=start, globals=holder))
            yield frames

    def variables(self, frame: Frame) -> Iterator[tuple[str, int, bool]]:
        """A function's variables that are set, and whether each is in a cell."""
        flags = (self.copy.list_at(frame.code + at.CODE_FLAGS, 1) or [0])[0]
        if not flags & at.OPTIMIZED:
            return
        names = self.tuple_items(self._word(frame.code + at.CODE_NAMES))
        kinds = self.copy.bytes_at(
            self._word(frame.code + at.CODE_KINDS) + at.BYTES_DATA, len(names)
        )
        values = self._now(frame.locals, len(names))
        for name, kind, value in zip(names, kinds, values, strict=False):
            if value:
                yield self.text(name), value, bool(kind & (at.FREE_VARIABLE | at.CELL_VARIABLE))

    def free_names(self, code: int) -> list[str]:
        """The names of what a function has from the one around it."""
        names = self.tuple_items(self._word(code + at.CODE_NAMES))
        kinds = self.copy.bytes_at(self._word(code + at.CODE_KINDS) + at.BYTES_DATA, len(names))
        pairs = zip(names, kinds, strict=False)
        return [self.text(name) for name, kind in pairs if kind & at.FREE_VARIABLE]

    def code_names(self, code: int) -> tuple[str, str]:
        """A function's qualified name, and its file."""
        words = self.copy.list_at(code + at.CODE_FILE, 3)
        return (self.text(words[2]), self.text(words[0])) if words else ("", "")

    def _word(self, address: int) -> int:
        return (self.copy.list_at(address, 1) or [0])[0]

    def _modules(self) -> int:
        """The dictionary of all modules: the one in the interpreter's state that has `sys`."""
        for state in self._states():
            words = self._state_words(state)
            for start in range(0, len(words), _AT_ONCE):  # it stands among the first
                for address in self._dicts(words[start : start + _AT_ONCE]):
                    if self._is_modules(address):
                        return address
        raise NotWalkable("its modules")

    def _dicts(self, words: list[int]) -> list[int]:
        found = np.array(words, dtype=np.uint64)
        found = np.unique(found[self.copy.readable(found, 48)])
        of_type = self.copy.word(found + np.uint64(at.TYPE))
        chosen: list[int] = found[of_type == np.uint64(self.types["PyDict_Type"])].tolist()
        return chosen

    def _is_modules(self, address: int) -> bool:
        module = self.types["PyModule_Type"]
        first = next(self.items(address), (0, 0))[1]
        if self.type_of(first) != module:
            return False
        missing = set(_MODULES)
        for name, value in self.named_items(address):
            if name in missing and self.type_of(value) == module:
                missing.remove(name)
                if not missing:
                    return True
        return False

    def _states(self) -> Iterator[int]:
        """What may be the state of the main interpreter: named behind the newest, which it may be.

        With other interpreters in the process the newest is one of these.
        """
        start, size = self._runtime
        words = np.array(self.copy.list_at(start, min(size // 8, 4096)), dtype=np.uint64)
        likely = self.copy.readable(words, 64) & (words > np.uint64(2**16))
        pairs = likely[:-1] & likely[1:]
        same = words[:-1] == words[1:]
        yield from words[1:][pairs & same].tolist()
        yield from words[1:][pairs & ~same][::-1].tolist()  # the main one comes after the newest

    def _threads(self) -> Iterator[int]:
        """The states of all threads."""
        for state in self._states():
            words = self._state_words(state)
            candidates = np.unique(np.array(words, dtype=np.uint64))
            candidates = candidates[self.copy.readable(candidates, 24)]
            names = self.copy.word(candidates + np.uint64(16))
            for first in candidates[names == np.uint64(state)].tolist():
                yield from self._chain(int(first), state)
                return

    def _state_words(self, state: int) -> list[int]:
        """The first words of an interpreter's state, which lies within the runtime's, or not."""
        start, size = self._runtime
        within = (start + size - state) // 8 if start <= state < start + size else _STATE_WORDS
        return self.copy.list_at(state, min(within, _STATE_WORDS))

    def _chain(self, thread: int, state: int) -> Iterator[int]:
        seen: set[int] = set()
        for link in (0, 1):  # those before, then this one and those after
            step = thread if link else (self.copy.list_at(thread, 1) or [0])[0]
            while step and step not in seen and len(seen) < _MOST_THREADS:
                words = self.copy.list_at(step, 3)
                if not words or words[2] != state:
                    break
                seen.add(step)
                yield step
                step = words[link]

    def _frames(self, thread: int) -> list[tuple[int, list[int]]]:
        """The frames of a thread with their words, as they are by now, the innermost first.

        A function that returns meanwhile leaves nothing behind that leads on: the longest of some
        tries is the one that was not led astray.
        """
        tries = (self._chain_of_frames(thread) for _ in range(_TRIES))
        return max(tries, key=len)

    def _chain_of_frames(self, thread: int) -> list[tuple[int, list[int]]]:
        layout = self.layout
        frame = self._now(thread + layout.thread_frame, 1)[0]
        if layout.frame_behind_pointer >= 0 and frame:
            frame = self._now(frame + layout.frame_behind_pointer, 1)[0]
        found: dict[int, list[int]] = {}
        while frame and frame not in found and len(found) < _MOST_FRAMES:
            words = self._now(frame, _FRAME_WORDS)
            if not any(words):
                break
            found[frame] = words
            frame = words[layout.frame_previous]
        code = self.types["PyCode_Type"]
        return [
            f for f in found.items() if self._now(f[1][layout.frame_code] + at.TYPE, 1)[0] == code
        ]

    def _now(self, address: int, count: int) -> list[int]:
        """Some words as they are by now, past the copy; zeros where they cannot be read."""
        if not 0 <= address < _ADDRESSES:
            return [0] * count
        place = np.array([address], dtype=np.uint64)
        if not self.copy.readable(place, 8 * count)[0]:
            return [0] * count
        words: list[int] = self.copy.now(place, count)[0].tolist()
        return words


def _wide(head: int) -> int:
    """What a text that is not ASCII alone has more before its letters."""
    return 24 if head == 48 else 16


def _symbols(pid: int, maps: Sequence[Mapping]) -> tuple[int, dict[str, tuple[int, int]]]:
    """The first address of the file that has the interpreter, and its symbols."""
    files: dict[str, int] = {}
    for m in maps:
        if m.path.startswith("/"):
            files.setdefault(m.path, m.start)
    programs = {m.path for m in maps if "x" in m.perms}
    likely = sorted(p for p in programs if "python" in p.rsplit("/", 1)[-1].lower())
    for path in [*likely, *sorted(programs.intersection(files).difference(likely))[:1]]:
        # A program that was replaced meanwhile is still there under the other name.
        program = os.path.realpath(f"/proc/{pid}/exe").removesuffix(" (deleted)")
        gone = [f"/proc/{pid}/exe"] if path.removesuffix(" (deleted)") == program else []
        for place in (f"/proc/{pid}/root{path}", *gone):
            found = dict(symbols(place, _WANTED))
            if {_RUNTIME, _VERSION, *TYPES} - found.keys() <= {"PyCMethod_Type"}:
                return files[path], found
    raise NotWalkable("an interpreter of Python 3.11 or later with its symbols")
