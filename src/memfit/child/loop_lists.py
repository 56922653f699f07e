"""The lists and queues that a program's variables hold: how long they are, and may become.

A queue says itself how long it may be; of a list, the program's text does: what its length is
compared with (`len(self.data) < self.capacity`), or what is kept of it (`games[-window:]`).
"""

from __future__ import annotations

import ast
import re
from collections import ChainMap, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from memfit.child.loop_bounds import Names
from memfit.child.script_variables import attributes

_DEPTH, _MOST_OBJECTS, _MOST_ENTRIES = 5, 5_000, 16
_LARGEST = 10**9
_NUMBER = re.compile(r"\[\d+\]")
Variables = Iterable[tuple[str, Any]]


@dataclass(frozen=True)
class Length:
    """How many elements there are, and at most may be; 0 where nothing is known of that."""

    elements: int
    most: int = 0


def queues_of(variables: Variables) -> dict[str, Length]:
    """Queues of bounded length, by their paths."""
    held = _held_by(list(variables), deque)
    found = {path: Length(len(q), q.maxlen) for path, q, _ in held if q.maxlen and q}
    return {**_together(found), **found}


def lists_of(variables: Variables, texts: Iterable[str]) -> dict[str, Length]:
    """Lists, and queues without a bound of their own, by their paths."""
    own = list(variables)
    bounds = list_bounds(texts)
    around = dict(reversed(own))  # the innermost function's first
    found: dict[str, Length] = {}
    for path, one, owner in _held_by(own, (list, deque)):
        if not getattr(one, "maxlen", None):
            name = path.rpartition(".")[2]
            most = _most(len(one), bounds.get(name, ()), around, owner)
            found[path] = Length(len(one), most)
    return {**_together(found), **found}


def _together(found: Mapping[str, Length]) -> dict[str, Length]:
    """What is in a list of alike things, as one: small arrays of these are told so."""
    sums: dict[str, Length] = {}
    for path, length in found.items():
        whole = _NUMBER.sub("[*]", path)
        if whole != path:
            before = sums.get(whole, Length(0))
            sums[whole] = Length(before.elements + length.elements, before.most + length.most)
    return sums


def list_bounds(texts: Iterable[str]) -> dict[str, list[ast.expr]]:
    """What the length of a variable or an attribute is held against, by its name."""
    found: dict[str, list[ast.expr]] = {}
    for text in texts:
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and len(node.ops) == 1:
                sides = node.left, node.comparators[0]
                for one, other in (sides, sides[::-1]):
                    if name := _measured(one):
                        found.setdefault(name, []).append(other)
            elif isinstance(node, ast.Subscript) and (kept := _kept(node)) is not None:
                found.setdefault(_last_name(node.value), []).append(kept)
    return found


def _measured(node: ast.expr) -> str:
    """The last name of what is in `len(...)`."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "len" and node.args:
        return _last_name(node.args[0])
    return ""


def _kept(node: ast.Subscript) -> ast.expr | None:
    """How many of the last elements `x[-n:]` keeps."""
    lower = getattr(node.slice, "lower", None)
    if isinstance(lower, ast.UnaryOp) and isinstance(lower.op, ast.USub):
        return lower.operand
    return None


def _last_name(node: ast.expr) -> str:
    return str(getattr(node, "attr", getattr(node, "id", "")))


def _most(length: int, bounds: Iterable[ast.expr], around: Mapping[str, Any], owner: object) -> int:
    """The least of the bounds that have not been passed: others say when something begins."""
    names = Names(ChainMap({"self": owner}, dict(around)))
    values = (names.value(bound) for bound in bounds)
    return min((v for v in values if type(v) is int and length <= v < _LARGEST), default=0)


def _held_by(
    variables: list[tuple[str, Any]], kind: type | tuple[type, ...]
) -> Iterator[tuple[str, Any, object]]:
    """Things of a kind that variables, and what these hold, are; and what has them."""
    level: list[tuple[str, Any, object]] = [(name, thing, None) for name, thing in variables]
    seen: set[int] = set()
    for _ in range(_DEPTH):
        below: list[tuple[str, Any, object]] = []
        for path, thing, owner in level[:_MOST_OBJECTS]:
            if id(thing) in seen:
                continue
            seen.add(id(thing))
            if issubclass(type(thing), kind):  # its own `__class__` may be code of its own
                yield path, thing, owner
            below += _parts(path, thing)
        level = below


def _parts(path: str, thing: Any) -> Iterator[tuple[str, Any, object]]:
    """What a thing holds by name, or as one of a few."""
    if type(thing) is dict and len(thing) <= _MOST_ENTRIES:
        yield from ((f"{path}[{key!r}]", value, thing) for key, value in list(thing.items()))
    elif type(thing) in (list, tuple) and len(thing) <= _MOST_ENTRIES:
        yield from ((f"{path}[{at}]", value, thing) for at, value in enumerate(list(thing)))
    for name, value in attributes(thing).items():
        yield f"{path}.{name}", value, thing
