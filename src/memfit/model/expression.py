"""Read a size that a person wrote, such as `agents * steps`, as a `Size`."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from operator import add, floordiv, mul, sub

from memfit.model.size import Size, ceil_div, const, knob, maximum, minimum

_LONGEST = 200
_ADVICE = "write whole numbers and knobs joined by + - * //, such as 'agents * steps'"
_CALLS = {"max": maximum, "min": minimum, "ceil_div": ceil_div}
_OPERATORS = {ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.FloorDiv: floordiv}


def parse_size(text: int | str, knobs: Collection[str]) -> Size:
    """The size that an expression over these knobs stands for; ValueError says what is wrong."""
    if isinstance(text, int):
        return const(text)
    if len(text) > _LONGEST:
        raise ValueError(f"is longer than {_LONGEST} characters: {_ADVICE}")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"{text!r} is no expression: {_ADVICE}") from None
    try:
        return _size(tree.body, knobs)
    except ZeroDivisionError:
        raise ValueError(f"{text!r} divides by zero: {_ADVICE}") from None
    except RecursionError:
        raise ValueError(f"{text!r} is nested too deeply: {_ADVICE}") from None


def names_in(text: int | str) -> Iterator[str]:
    """The names in an expression, in the order in which they stand there."""
    if isinstance(text, str):
        tree = ast.parse(text.strip(), mode="eval")
        names = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id not in _CALLS]
        yield from (n.id for n in sorted(names, key=lambda n: n.col_offset))


def _size(node: ast.expr, knobs: Collection[str]) -> Size:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return const(node.value)
    if isinstance(node, ast.Name):
        if node.id not in knobs:
            known = ", ".join(sorted(knobs)) or "none"
            raise ValueError(f"{node.id!r} is no knob of this run: its knobs are {known}")
        return knob(node.id)
    if isinstance(node, ast.BinOp) and (join := _OPERATORS.get(type(node.op))):
        joined: Size = join(_size(node.left, knobs), _size(node.right, knobs))
        return joined
    if isinstance(node, ast.Call) and (call := _CALLS.get(ast.unparse(node.func))):
        if len(node.args) != 2 or node.keywords:
            raise ValueError(f"{ast.unparse(node)!r} needs two sizes: {_ADVICE}")
        return call(*(_size(argument, knobs) for argument in node.args))
    raise ValueError(f"{ast.unparse(node)!r} cannot stand in a size: {_ADVICE}")
