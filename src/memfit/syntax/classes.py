"""Classes: their bases, methods, and what their methods do with `self.name`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from memfit.syntax.source import Source, last_name

_FILLING = {"append", "appendleft", "extend", "fill", "fill_", "zero_", "copy_", "clear"}
Method = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(kw_only=True)
class SelfAttribute:
    """What a class does with one of its attributes, each with the method that does it.

    `stores` give it a value, `writes` put something into it (`self.x[i] = y`, `self.x.append(y)`)
    or empty it, `reads` are the rest.
    """

    name: str
    stores: list[tuple[Method, ast.expr | None]] = field(default_factory=list)
    writes: list[tuple[Method, ast.Attribute]] = field(default_factory=list)
    reads: list[tuple[Method, ast.Attribute]] = field(default_factory=list)


def classes_with_base(source: Source, *endings: str) -> Iterator[ast.ClassDef]:
    """Classes that name a base ending so (`gym.Env`: Env); bases of this file are followed."""
    for node in source.nodes(ast.ClassDef):
        if _has_base(source, node, endings, 5):
            yield node


def _has_base(source: Source, node: ast.ClassDef, endings: tuple[str, ...], depth: int) -> bool:
    for base in node.bases:
        named = base.value if isinstance(base, ast.Subscript) else base
        if last_name(named).endswith(endings):
            return True
        above = source.definition(named)
        known = depth > 0 and isinstance(above, ast.ClassDef) and above is not node
        if known and _has_base(source, above, endings, depth - 1):  # type: ignore[arg-type]
            return True
    return False


def methods(node: ast.ClassDef) -> dict[str, Method]:
    """The methods of a class by name."""
    return {m.name: m for m in node.body if isinstance(m, Method)}


def self_attributes(source: Source, node: ast.ClassDef) -> dict[str, SelfAttribute]:
    """What the methods of a class do with `self.name`."""
    found: dict[str, SelfAttribute] = {}
    for method in methods(node).values():
        parameters = method.args.posonlyargs + method.args.args
        if not parameters:
            continue
        for one in ast.walk(method):
            if (
                isinstance(one, ast.Attribute)
                and isinstance(one.value, ast.Name)
                and one.value.id == parameters[0].arg
            ):
                _add(source, found.setdefault(one.attr, SelfAttribute(name=one.attr)), method, one)
    return found


def _add(source: Source, to: SelfAttribute, method: Method, node: ast.Attribute) -> None:
    above = source.parent(node)
    if not isinstance(node.ctx, ast.Load):
        value = above.value if isinstance(above, ast.Assign | ast.AnnAssign) else None
        to.stores.append((method, value))
        if isinstance(above, ast.AugAssign):
            to.reads.append((method, node))
    elif (isinstance(above, ast.Subscript) and not isinstance(above.ctx, ast.Load)) or (
        isinstance(above, ast.Attribute)
        and above.attr in _FILLING
        and isinstance(source.parent(above), ast.Call)
    ):
        to.writes.append((method, node))
    else:
        to.reads.append((method, node))
