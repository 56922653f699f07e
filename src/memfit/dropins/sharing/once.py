"""What envs build alike is built once, and all envs of the process have the same.

    build_once("game.level:LevelGraph", "game.pictures:background")

From then on, the same arguments give the same object. Its arrays are read-only, so that an env
that writes to one ends with an error, and never changes what another sees.
"""

from __future__ import annotations

import functools
import gc
import importlib
import pickle
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

from memfit.errors import UsageError

_MOST_OBJECTS = 1_000_000  # that are looked through for arrays
_WHOLE = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, type)
_made: dict[str, dict[bytes, Any]] = {}
_lock = threading.RLock()


def build_once(*names: str) -> None:
    """Let functions and classes, each by `module:name`, build each thing once in this process.

    Give those whose results nobody changes, before the envs are made. Arguments are the same if
    pickle stores them alike; where it cannot, each call builds as before. Objects stay until the
    process ends.
    """
    for name in names:
        with _lock:
            if name not in _made:
                _put(name)


def things_built(name: str) -> int:
    """How many different things a function or class has built, 0 where it was never asked."""
    return len(_made.get(name, ()))


def _put(name: str) -> None:
    module_name, _, attribute = name.partition(":")
    if not attribute.isidentifier():
        raise UsageError(f"build_once({name!r}): write module:name, such as game.level:LevelGraph")
    try:
        builder = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"build_once({name!r}): {error}. Correct the name") from error
    if isinstance(builder, type):
        _put_class(name, builder)
    elif isinstance(builder, types.FunctionType):
        _put_function(name, builder)
    else:
        raise UsageError(f"build_once({name!r}): this is no function and no class. Name another")


def _put_function(name: str, builder: types.FunctionType) -> None:
    kept = _made[name] = {}

    @functools.wraps(builder)
    def once(*args: Any, **options: Any) -> Any:
        return _kept_or_made(kept, builder, args, options)

    # Modules that have imported it by its name have it too.
    for module in list(sys.modules.values()):
        own = getattr(module, "__dict__", None)
        if isinstance(own, dict):
            for key in [key for key, value in list(own.items()) if value is builder]:
                own[key] = once


def _put_class(name: str, kind: Any) -> None:
    """The class stays the same one, and gives an object that it made before."""
    kept = _made[name] = {}
    build = kind.__init__

    def made(*args: Any, **options: Any) -> Any:
        thing = object.__new__(kind)
        build(thing, *args, **options)
        return thing

    def new(own: Any, *args: Any, **options: Any) -> Any:
        if own is not kind:
            return object.__new__(own)
        return _kept_or_made(kept, made, args, options)

    def init(self: Any, *args: Any, **options: Any) -> None:
        if type(self) is not kind:  # a class that inherits from it builds as before
            build(self, *args, **options)

    if kind.__new__ is not object.__new__ or type(kind) is not type:
        _made.pop(name)
        raise UsageError(f"build_once({name!r}): this class makes its objects in its own way")
    type.__setattr__(kind, "__new__", staticmethod(new))
    type.__setattr__(kind, "__init__", functools.wraps(build)(init))


def _kept_or_made(kept: dict[bytes, Any], make: Callable[..., Any], args: Any, options: Any) -> Any:
    try:
        key = pickle.dumps((args, sorted(options.items())))
    except Exception:  # noqa: BLE001 - objects raise what they like: then it is built as before
        return make(*args, **options)
    with _lock:
        if key not in kept:
            thing = make(*args, **options)
            _make_read_only(thing)
            kept[key] = thing
        return kept[key]


def _make_read_only(thing: Any) -> None:
    """Let nobody write to the arrays of an object any more."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is None:
        return
    seen, stack = {id(thing)}, [thing]
    while stack and len(seen) < _MOST_OBJECTS:
        one = stack.pop()
        if isinstance(one, numpy.ndarray):
            one.flags.writeable = False
        elif isinstance(one, _WHOLE):
            continue
        for inner in gc.get_referents(one):
            if id(inner) not in seen:
                seen.add(id(inner))
                stack.append(inner)
