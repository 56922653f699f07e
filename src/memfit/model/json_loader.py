"""Nouns as JSON and back: the one loader for all that crosses from one process to another."""

from __future__ import annotations

import math
import reprlib
import types
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def to_json(value: Any) -> Any:
    """Plain dictionaries, lists, texts and numbers for a noun made of dataclasses."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def from_json(kind: type[T], data: Any, *, foreign: bool = False) -> T:
    """The noun of this kind that `to_json` took apart; a field that is missing has its default.

    Data that memfit did not write itself are `foreign`: a value that is not of its field's kind is
    a ValueError that says where, and a field that the noun does not know is left out.
    """
    made: T = _load(kind, data, foreign)
    return made


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _load(kind: Any, data: Any, foreign: bool) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any or origin is Literal or (data is None and not foreign):
        return data
    if origin in (Union, types.UnionType):
        kinds = [k for k in inner if k is not type(None)]
        if data is None and len(kinds) < len(inner):
            return None
        return _load(kinds[0], data, foreign) if len(kinds) == 1 else data  # several: plain data
    if origin in (tuple, list):
        items = _of(data, list, tuple)
        if inner[-1] is Ellipsis or origin is list:
            return origin(_load(inner[0], item, foreign) for item in items)
        return tuple(_load(k, item, foreign) for k, item in zip(inner, items, strict=True))
    if origin is not None and issubclass(origin, Mapping):
        return {key: _load(inner[1], item, foreign) for key, item in _of(data, dict).items()}
    if isinstance(kind, type) and is_dataclass(kind):
        return kind(**dict(_fields(kind, _of(data, dict), foreign)))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(data)
    if not foreign:
        return data
    if kind is float and not abs(_of(data, float, int)) < math.inf:
        raise ValueError(f"{data!r} is no number")
    return data if kind is float else _of(data, kind)


def _fields(kind: type, data: Mapping[str, Any], foreign: bool) -> Iterator[tuple[str, Any]]:
    hints = _hints(kind)
    for name, item in data.items():
        if foreign and name not in hints:
            continue
        hint = hints[name]
        try:
            yield name, _load(hint, item, foreign)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None


def _of(data: Any, *kinds: type) -> Any:
    """A value that must be of one of these kinds: true and false are no numbers."""
    if type(data) not in kinds:
        raise ValueError(f"{reprlib.repr(data)} is no {kinds[0].__name__}")
    return data
