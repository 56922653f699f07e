"""A program's own settings, found in its variables while it runs.

They are whole numbers in what argparse, tyro, absl, OmegaConf and the like give, in dataclasses,
named tuples and dicts of settings, in objects and modules that hold them, and plain variables.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from types import ModuleType
from typing import Any

from memfit.libraries.loop.constants import whole_number

_MOST = 200  # parts of one thing
_DEPTH, _THINGS = 4, 4000
_SPACES = ("Namespace", "SimpleNamespace")
_KEYED = ("DictConfig", "ConfigDict", "FrozenConfigDict")
_SCALARS = (int, float, str, bytes, bool, type(None))
_IDLE = ("seed", "random_seed", "rng_seed", "SEED")  # no setting of the run's size

Variables = Iterable[tuple[str, Any]]


def settings_in(
    variables: Variables,
    given: Mapping[str, bool],
    read: Mapping[str, int],
    is_own: Callable[[str], bool],
) -> dict[str, int]:
    """Names and values of settings, those of the innermost function first.

    `given` are the names to which the program's text gives values, and whether a plain variable of
    that name is one; `read` is what it has read from its command line and from files; `is_own`
    tells the program's own files. What is neither given nor read is no setting: nothing could
    change it.
    """
    own = list(variables)
    things = [thing for _, thing in own if not issubclass(type(thing), type)]
    # Classes have defaults too.
    classes = [thing for _, thing in own if issubclass(type(thing), type)]
    plain = [(name, thing) for name, thing in own if given.get(name)]
    found: dict[str, int] = {}
    for name, value in (*_held(things, is_own), *plain, *read.items(), *_held(classes, is_own)):
        number = whole_number(value)
        if number is not None and name not in _IDLE and (name in given or name in read):
            found.setdefault(name, number)
    return found


def _held(things: list[Any], is_own: Callable[[str], bool]) -> Iterator[tuple[str, Any]]:
    """What is held by names of its own, the nearest first."""
    level, seen = things, set[int]()
    for _ in range(_DEPTH):
        below: list[Any] = []
        for thing in level:
            if issubclass(type(thing), _SCALARS) or id(thing) in seen or len(seen) > _THINGS:
                continue
            seen.add(id(thing))
            with suppress(Exception):  # what cannot be looked at has no settings
                for name, value in list(_parts(thing, is_own))[:_MOST]:
                    if isinstance(name, str) and name.isidentifier():
                        yield name, value
                        if not issubclass(type(value), type):
                            below.append(value)
        level = below


def _parts(thing: Any, is_own: Callable[[str], bool]) -> Iterable[tuple[Any, Any]]:
    kind = type(thing)
    if issubclass(type(thing), dict):
        return thing.items() if len(thing) <= _MOST else ()
    if kind.__name__ in _KEYED:
        return _entries(thing)
    if kind.__name__ == "FlagValues":
        return list(thing.flag_values_dict().items())
    if issubclass(type(thing), tuple):
        return list(zip(getattr(kind, "_fields", ()), thing, strict=False))
    if issubclass(type(thing), ModuleType):
        return vars(thing).items() if is_own(str(getattr(thing, "__file__", ""))) else ()
    if issubclass(type(thing), type):
        return vars(thing).items() if _is_of_program(thing, is_own) else ()
    if kind.__name__ in _SPACES or is_dataclass(thing) or _is_of_program(kind, is_own):
        return _attributes(thing, is_own)
    return ()


def _entries(thing: Any) -> Iterator[tuple[Any, Any]]:
    """Each entry by itself: one may be still to be given, or refer to what is not there."""
    for key in list(thing):
        with suppress(Exception):
            yield key, thing[key]


def _attributes(thing: Any, is_own: Callable[[str], bool]) -> Iterator[tuple[str, Any]]:
    """What an instance has by itself, then what its classes have; no code of its own is called."""
    yield from list(getattr(thing, "__dict__", {}).items())
    for kind in type(thing).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if not name.startswith("__"):
                yield name, getattr(thing, name, None)
        if _is_of_program(kind, is_own):
            yield from list(vars(kind).items())


def _is_of_program(kind: type, is_own: Callable[[str], bool]) -> bool:
    module = sys.modules.get(kind.__module__)
    return module is not None and is_own(str(getattr(module, "__file__", "")))
