"""Objects of a training that end its process as soon as any code of them is called."""

from __future__ import annotations

import os
import types
from typing import Any

import numpy as np

_armed = False
_NAMES = (
    *("__eq__", "__ne__", "__lt__", "__hash__", "__bool__", "__len__", "__iter__", "__next__"),
    *("__contains__", "__getitem__", "__repr__", "__str__", "__format__", "__int__", "__index__"),
    *("__float__", "__bytes__", "__call__", "__getattr__", "__getattribute__", "__dir__"),
    *("__sizeof__", "__reduce__", "__reduce_ex__", "__instancecheck__", "__subclasscheck__"),
    *("__array__", "__enter__", "__exit__", "__copy__", "__deepcopy__", "__length_hint__"),
)


def _ended(name: str, *_: object, **__: object) -> None:
    os.write(2, f"{name} was called\n".encode())
    os._exit(99)


def _method(name: str, base: type) -> Any:
    def called(self: Any, *words: Any, **more: Any) -> Any:
        if _armed:
            _ended(name)
        own = getattr(base, name, None)
        if own is None:
            raise AttributeError(name)
        return own(self, *words, **more)

    return called


def _hostile(name: str, base: type) -> Any:
    kind = type(base)
    meta: Any = type("Meta", (kind,), {n: _method(n, kind) for n in _NAMES})
    body = {n: _method(n, base) for n in _NAMES}
    body["nbytes"] = property(lambda self: _ended("nbytes") if _armed else 0)
    body["shape"] = property(lambda self: _ended("shape") if _armed else ())
    if base is object:  # a container tells its own
        body["__class__"] = property(lambda self: _ended("__class__") if _armed else meta)
    return meta(name, (base,), body)


def made() -> list[Any]:
    """One of each kind, armed."""
    global _armed  # noqa: PLW0603
    found: list[Any] = [
        _hostile("Agent", object)(),
        _hostile("Replay", list)([np.ones(30_000)]),
        _hostile("Table", dict)(a=np.ones(40_000)),
        _hostile("Pair", tuple)((np.ones(50_000),)),
        _hostile("Names", set)(["x"]),
        _hostile("Word", str)("x" * 100_000),
        _hostile("Number", int)(5),
        _hostile("Module", types.ModuleType)("hostile"),
        types.ModuleType("\x1b[2J\x1b]0;title\x07"),
    ]
    deep: list[Any] = []
    for _ in range(50_000):
        deep = [deep]
    around: list[Any] = [deep]
    around.append(around)
    kinds = [type(one) for one in found]
    _armed = True
    return [found, kinds, around, {"\x1b[31mred\n": np.ones(60_000)}]
