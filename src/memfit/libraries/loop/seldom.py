"""What a program does every so often: `if step % n == 0:` before it evaluates or saves.

Such a condition asks whoever watches the loop first, so that what comes late can be seen early.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from typing import Any

DUE = "__memfit_due__"  # the builtin that is asked, with the condition's own value and its place
_SELDOM = re.compile(r"(^|_)(eval|valid|test|save|checkpoint|ckpt|dump|video|plot)")


def ask_first(tree: ast.Module, path: str) -> None:
    """Let the conditions of what is seldom ask, where there is anybody to ask."""
    if not hasattr(builtins, DUE):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and any(map(_is_seldom, _calls(node.body))):
            node.test = _asking(node.test, path)


def _asking(test: ast.expr, path: str) -> ast.expr:
    """A condition in which a comparison of what is left of a division asks."""
    if isinstance(test, ast.BoolOp):
        test.values = [_asking(value, path) for value in test.values]
        return test
    if not _is_of_remainder(test):
        return test
    place = ast.Constant(f"{path}:{test.lineno}:{test.col_offset}")
    call = ast.Call(ast.Name(DUE, ast.Load()), [test, place], [])
    return ast.fix_missing_locations(ast.copy_location(call, test))


def _is_of_remainder(test: ast.expr) -> bool:
    """Whether it is `a % b == c`, or `not a % b`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _is_remainder(test.operand)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    return isinstance(test.ops[0], ast.Eq) and _is_remainder(test.left)


def _is_remainder(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)


def _calls(body: list[ast.stmt]) -> Iterator[ast.Call]:
    for statement in body:
        yield from (node for node in ast.walk(statement) if isinstance(node, ast.Call))


def _is_seldom(call: ast.Call) -> bool:
    """Whether a call evaluates or saves, by its name; a network's `eval()` does not."""
    func: Any = call.func
    name = str(getattr(func, "attr", getattr(func, "id", ""))).lower()
    return _SELDOM.search(name) is not None and name != "eval"
