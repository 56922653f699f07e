"""Says what stands at a holder's path: its class, where that is written, and what bounds it."""

from __future__ import annotations

import ast
import collections
import functools
import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memfit.inside import paths

_STEP = re.compile(r"\.([A-Za-z_]\w*)|\[((?:[^\[\]'\"]|'[^']*'|\"[^\"]*\")*)\]")
# Attributes that say how many entries a container of the same object may have.
_CAPACITY = re.compile(
    r"_*(\w+_)?(max_?len(gth)?|max_?size|max_?entries|max_?items|capacity|limit|cache_size"
    r"|buffer_size|window)",
    re.IGNORECASE,
)
_CONTAINERS = (list, dict, set, collections.deque, bytearray)
_PLAIN = ("builtins", "collections", "numpy", "functools", "weakref", "torch")


def tell(file: Path) -> None:
    """Put in the place of a list of paths what is known of each."""
    asked: list[str] = json.loads(file.read_text())
    file.write_text(json.dumps({path: _told(path) for path in asked}))


def _told(path: str) -> dict[str, Any]:
    way = list(_way(path))
    if not way:
        return {}
    found: dict[str, Any] = {}
    held = way[-1]
    owner = next((thing for thing in reversed(way) if _is_own(thing)), None)
    if owner is not None:
        kind = owner if isinstance(owner, type) else type(owner)
        found["owner"] = f"{kind.__module__}.{kind.__qualname__}"
        found["where"] = _where(kind)
    bound = _bound(held, owner)
    if bound is None and len(way) > 1:
        bound = _bound(way[-2], owner)
    if bound is not None:
        found["bound"], found["capacity"], found["length"] = bound
    return found


def _way(path: str) -> Iterator[Any]:
    """The things from a path's beginning to its end, as far as they are found."""
    thing, rest = _root(path)
    if rest is None:
        return
    yield thing
    for step in _STEP.finditer(rest):
        name, key = step.groups()
        if key == "*" and step.end() == len(rest):
            return
        try:  # of many alike, the first
            if key == "*":
                thing = next(iter(thing.values() if isinstance(thing, dict) else thing))
            else:
                thing = _attribute(thing, name) if name else _item(thing, key)
        except (LookupError, AttributeError, StopIteration, TypeError, ValueError):
            return
        yield thing


def _root(path: str) -> tuple[Any, str | None]:
    main = vars(sys.modules["__main__"])
    name = re.match(r"\w+", path)
    if name and name.group() in main and name.group() in ("env", "envs", "wrapped"):
        return main[name.group()], path[name.end() :]
    if name and name.group() == "envs" and "env" in main:  # of a vector env
        return getattr(main["env"], "envs", ()), path[name.end() :]
    parts = path.split(".")
    for count in range(len(parts) - 1, 0, -1):
        module = sys.modules.get(".".join(parts[:count]))
        if module is not None:
            return module, path[len(".".join(parts[:count])) :]
    return None, None


def _attribute(thing: Any, name: str) -> Any:
    """An attribute from where it is stored: nothing of the environment's own is called."""
    own = inspect.getattr_static(thing, name)
    if hasattr(own, "__get__") and type(own).__name__ in ("member_descriptor", "getset_descriptor"):
        return object.__getattribute__(thing, name)
    return own


def _item(thing: Any, key: str) -> Any:
    if isinstance(thing, dict):
        for name in dict(thing):
            if paths.key(name, among=len(thing)) == f"[{key}]":
                return dict.__getitem__(thing, name)
    return thing[ast.literal_eval(key)] if isinstance(thing, (list, tuple, dict)) else None


def _is_own(thing: Any) -> bool:
    kind = thing if isinstance(thing, type) else type(thing)
    return kind.__module__.partition(".")[0] not in _PLAIN and kind.__name__ != "module"


def _where(kind: type) -> str:
    try:
        file, line = inspect.getsourcefile(kind), inspect.getsourcelines(kind)[1]
    except (OSError, TypeError):
        return ""
    return f"{file}:{line}"


def _bound(held: Any, owner: Any) -> tuple[str, int, int] | None:
    """What ends the growth of a container: how many entries it may have, and how many it has."""
    if isinstance(held, collections.deque) and held.maxlen is not None:
        return "maxlen of the deque", held.maxlen, len(held)
    if isinstance(held, functools._lru_cache_wrapper):
        most: Any = held.cache_parameters()["maxsize"]
        return None if most is None else ("maxsize of the cache", most, held.cache_info().currsize)
    if not isinstance(held, _CONTAINERS):
        return None
    for thing in (held, owner):
        for name, value in _numbers(thing):
            if _CAPACITY.fullmatch(name) and value >= max(2, len(held)):
                return f"{name} of {type(thing).__name__}", value, len(held)
    return None


def _numbers(thing: Any) -> Iterator[tuple[str, int]]:
    """Whole numbers that an object, or its class, has under a name."""
    kinds = type(thing).__mro__ if thing is not None else ()
    for names in (getattr(thing, "__dict__", {}), *(vars(kind) for kind in kinds)):
        for name, value in dict(names).items():
            if type(value) is int:
                yield name, value
