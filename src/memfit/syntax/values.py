"""Values that can be told without running anything: constants, and where a value comes from."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from memfit.syntax.bindings import BindingKind
from memfit.syntax.source import Source

_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_DEPTH = 12
_LARGEST = 10**18


def constant(source: Source, node: ast.AST | None, depth: int = _DEPTH) -> Any:
    """The value of an expression that is always the same: numbers and words; None if unknown.

    A name counts if it is given a value once, in its own scope.
    """
    if node is None or depth <= 0:
        return None
    below = depth - 1
    match node:
        case ast.Constant():
            return node.value
        case ast.UnaryOp(op=ast.USub()):
            value = constant(source, node.operand, below)
            return -value if _is_number(value) else None
        case ast.BinOp():
            left, right = (constant(source, n, below) for n in (node.left, node.right))
            return _calculated(node.op, left, right)
        case ast.Call(func=ast.Name(id="int" | "float" as kind), args=[only], keywords=[]):
            value = constant(source, only, below)
            return (int if kind == "int" else float)(value) if _is_number(value) else None
        case ast.Subscript():
            return _entry(source, node, below)
        case ast.Name():
            found = source.bindings(node)
            if len(found) == 1 and found[0].kind is BindingKind.VALUE:
                return constant(source, found[0].value, below)
    return None


def number(source: Source, node: ast.AST | None) -> int | None:
    """A whole number that is always the same, also one written as 1e6."""
    value = constant(source, node)
    if _is_number(value) and value == int(value):
        return int(value)
    return None


def origin(source: Source, node: ast.AST | None, depth: int = _DEPTH) -> ast.AST | None:
    """The expression that a name stands for, followed while each is given a value once."""
    if isinstance(node, ast.Name) and depth > 0:
        found = source.bindings(node)
        if len(found) == 1 and found[0].kind is BindingKind.VALUE:
            return origin(source, found[0].value, depth - 1)
    return node


def origins(source: Source, node: ast.AST | None) -> list[ast.AST]:
    """All expressions that a name is given in its scope; of anything else, itself."""
    if not isinstance(node, ast.Name):
        return [] if node is None else [node]
    return [b.value for b in source.bindings(node) if b.value is not None]


def _entry(source: Source, node: ast.Subscript, depth: int) -> Any:
    """`config["lr"]`, of a dict that is written out."""
    key, held = constant(source, node.slice, depth), origin(source, node.value)
    if isinstance(held, ast.Dict) and isinstance(key, str):
        found = [
            value
            for name, value in zip(held.keys, held.values, strict=True)
            if isinstance(name, ast.Constant) and name.value == key
        ]
        return constant(source, found[0], depth) if len(found) == 1 else None
    return None


def _calculated(kind: ast.operator, left: Any, right: Any) -> Any:
    operation = _OPERATIONS.get(type(kind))
    if operation is None or not _is_number(left) or not _is_number(right):
        return None
    if isinstance(kind, ast.Pow) and (abs(left) > 1024 or abs(right) > 64):
        return None
    try:
        value = operation(left, right)
    except (ArithmeticError, ValueError):
        return None
    return value if _is_number(value) and abs(value) < _LARGEST else None


def _is_number(value: Any) -> bool:
    finite = isinstance(value, int | float) and not isinstance(value, bool)
    return finite and abs(value) < float("inf")
