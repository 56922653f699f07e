"""The arrays that an object of a training holds, by path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_DEEPEST = 4
_MOST_ITEMS = 10_000


def arrays(of: Any, path: str) -> dict[str, int]:
    """Bytes of the arrays and tensors that an object's attributes lead to, by path.

    Dicts, lists and tuples are looked into, and the items of a list count as one: `history[*]`.
    """
    found: dict[str, int] = {}
    seen: set[int] = set()
    for name, value in getattr(of, "__dict__", {}).items():
        for where, array in _below(value, f"{path}.{name}", 0):
            if id(array) not in seen:
                seen.add(id(array))
                found[where] = found.get(where, 0) + int(array.nbytes)
    return {where: size for where, size in found.items() if size}


def _below(value: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(getattr(value, "nbytes", None), int):
        yield path, value
    elif depth >= _DEEPEST:
        return
    elif isinstance(value, dict):
        for key, item in list(value.items())[:_MOST_ITEMS]:
            yield from _below(item, f"{path}[{key!r}]", depth + 1)
    elif isinstance(value, (list, tuple)):
        for item in value[:_MOST_ITEMS]:
            yield from _below(item, f"{path}[*]", depth + 1)
