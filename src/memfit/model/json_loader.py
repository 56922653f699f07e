"""Nouns as JSON and back: the one loader for all that crosses from one process to another."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

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


def from_json(kind: type[T], data: Any) -> T:
    """The noun of this kind that `to_json` took apart; a field that is missing has its default."""
    made: T = _load(kind, data)
    return made


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _load(kind: Any, data: Any) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any or data is None:
        return data
    if origin in (Union, types.UnionType):
        kinds = [k for k in inner if k is not type(None)]
        return _load(kinds[0], data) if len(kinds) == 1 else data  # several kinds: plain data
    if origin is tuple:
        if inner[-1] is Ellipsis:
            return tuple(_load(inner[0], item) for item in data)
        return tuple(_load(k, item) for k, item in zip(inner, data, strict=True))
    if origin is list:
        return [_load(inner[0], item) for item in data]
    if origin is not None and issubclass(origin, Mapping):
        return {key: _load(inner[1], item) for key, item in data.items()}
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        return kind(**{name: _load(hints[name], item) for name, item in data.items()})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(data)
    return data
