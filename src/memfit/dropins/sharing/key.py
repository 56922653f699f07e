"""Which calls of shared() mean the same data: a digest of what a factory depends on.

Covered are the code of the factory and of the user's functions that it names, the values that
they use, the program's arguments and directory, and the run: programs that were started apart
from each other share only by a key that is given.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import logging
import os
import secrets
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from memfit.errors import UsageError

_RUN = "MEMFIT_RUN"
_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_MOST_VALUES = 100_000
_LIBRARIES = (
    sysconfig.get_paths()["stdlib"],
    sysconfig.get_paths()["purelib"],
    sysconfig.get_paths()["platlib"],
    "<frozen",
)


def run_token() -> str:
    """A name for this run, which processes that it starts inherit."""
    return os.environ.setdefault(_RUN, secrets.token_hex(8))


def code_digest(factory: Callable[[], Any]) -> str:
    """A digest of what a factory depends on, wherever it is written; UsageError where it cannot
    be told.
    """
    return _hashed(_Describer(places=False).value(factory))


def own_digest(factory: Callable[[], Any]) -> str:
    """The digest for a factory that was given without a key."""
    code = _Describer(places=True).value(factory)
    return _hashed((run_token(), sys.argv, str(Path.cwd()), *_versions(), code))


def named_digest(key: str) -> str:
    """The digest of a key that the user gave."""
    return _hashed(("key", key, *_versions()))


def _versions() -> tuple[str, ...]:
    return (sys.version, np.__version__)


def _hashed(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:32]


class _Describer:
    """Turns values into texts that are the same in every process."""

    def __init__(self, *, places: bool) -> None:
        self._places = places
        self._found: dict[int, str] = {}
        self._open: list[int] = []
        self._held: list[Any] = []  # so that no id is given out again

    def value(self, value: Any) -> Any:
        if type(value) in _PLAIN:
            return value
        if id(value) in self._found:
            return self._found[id(value)]
        if id(value) in self._open:
            return ("within", self._open.index(id(value)))
        self._open.append(id(value))
        self._held.append(value)
        if len(self._held) > _MOST_VALUES:
            raise _unknown(value, "belongs to too much to compare")
        found = _hashed((type(value).__qualname__, *self._parts(value)))
        self._open.pop()
        self._found[id(value)] = found
        return found

    def _parts(self, value: Any) -> Iterator[Any]:
        if isinstance(value, types.FunctionType):
            yield from self._function(value)
        elif isinstance(value, types.CodeType):
            yield from self._code(value)
        elif isinstance(value, (types.ModuleType, logging.Logger)):
            yield (value.__name__ if isinstance(value, types.ModuleType) else value.name)
        elif isinstance(value, (type, types.BuiltinFunctionType)):
            yield (_module(value), value.__qualname__)
        elif isinstance(value, types.MethodType):
            yield from (self.value(value.__func__), self.value(value.__self__))
        elif isinstance(value, functools.partial):
            yield from map(self.value, (value.func, value.args, value.keywords))
        elif isinstance(value, (list, tuple)):
            yield from map(self.value, value)
        elif isinstance(value, dict):
            yield from ((self.value(k), self.value(v)) for k, v in value.items())
        elif isinstance(value, (set, frozenset)):
            yield from sorted(repr(self.value(part)) for part in value)
        elif isinstance(value, enum.Enum):
            yield value.name
        elif isinstance(value, (PurePath, np.dtype, range)):
            yield str(value)
        elif isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
            whole = np.ascontiguousarray(value)
            yield from (str(value.dtype), value.shape)
            yield hashlib.sha256(whole.view(np.uint8).data if whole.size else b"").hexdigest()
        elif isinstance(value, functools._lru_cache_wrapper):
            yield self.value(value.__wrapped__)
        else:
            yield from self._object(value)

    def _object(self, value: Any) -> Iterator[Any]:
        """What pickle would store of it."""
        try:
            stored = value.__reduce_ex__(4)
        except Exception:  # noqa: BLE001 - any class may refuse in its own way
            raise _unknown(value, "cannot be compared between processes") from None
        if isinstance(stored, str):
            yield (_module(value), stored)
            return
        for part in stored:
            yield self.value(list(part) if isinstance(part, Iterator) else part)

    def _function(self, function: types.FunctionType) -> Iterator[Any]:
        if self._places or not _anonymous(function):
            yield (_module(function), function.__qualname__)
        if function.__code__.co_filename.startswith(_LIBRARIES):
            return
        yield self.value(function.__code__)
        yield self.value(function.__defaults__)
        yield self.value(function.__kwdefaults__)
        yield from (self.value(_content(cell)) for cell in function.__closure__ or ())
        names = sorted(set(_names(function.__code__)))
        for name in names:
            if name not in function.__globals__:
                continue
            found = function.__globals__[name]
            yield (name, self.value(found))
            file = getattr(found, "__file__", None) or _LIBRARIES[0]
            if isinstance(found, types.ModuleType) and not file.startswith(_LIBRARIES):
                yield from ((n, self.value(vars(found)[n])) for n in names if n in vars(found))

    def _code(self, code: types.CodeType) -> Iterator[Any]:
        if self._places:
            yield (str(Path(code.co_filename).absolute()), code.co_firstlineno)
        yield from (code.co_code, code.co_names)
        yield from map(self.value, code.co_consts)


def _module(value: Any) -> str:
    """The name of a module; a script has another one in processes that multiprocessing makes."""
    found = getattr(value, "__module__", None) or type(value).__module__  # `...` has none itself
    return "__main__" if found == "__mp_main__" else str(found)


def _anonymous(function: types.FunctionType) -> bool:
    """Whether a function's name says only where it was written."""
    return "<" in function.__qualname__ or _module(function) == "__main__"


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from _names(part)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return "empty"


def _unknown(value: Any, why: str) -> UsageError:
    return UsageError(
        f"what shared() is given depends on a {type(value).__name__}, which {why}. Give a key "
        "that names the data: shared(factory, key='level-3')"
    )
