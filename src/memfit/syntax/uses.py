"""What a part of a text does with something that it names."""

from __future__ import annotations

import ast

from memfit.syntax.source import dotted

_TAKE_OUT = {"pop", "popleft", "popitem", "clear", "remove"}


def is_emptied(root: ast.AST, name: str) -> bool:
    """Whether something is taken out of `name` (`self.x`) there, or put in the place of a part."""
    return any(_takes_out(node, name) for node in ast.walk(root))


def _takes_out(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in _TAKE_OUT and dotted(node.value) == name
    changes = isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)
    return changes and dotted(node.value) == name  # type: ignore[attr-defined]


def is_assigned(root: ast.AST, *names: str) -> bool:
    """Whether one of these names, dotted or not, is given a value there."""
    return any(
        isinstance(node, ast.Name | ast.Attribute)
        and not isinstance(node.ctx, ast.Load)
        and dotted(node) in names
        for node in ast.walk(root)
    )
