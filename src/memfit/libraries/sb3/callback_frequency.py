"""Whether a callback's frequency was divided where a script makes it, as by the number of envs.

A callback only holds the number that came out. So when it is made, the text of its call is read:
the frequency, or what was assigned to a name in it, may be a division by something that has a name.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from memfit.model.training import ModuleHook

_FREQUENCIES = ("eval_freq", "save_freq")
Position = tuple[int | None, ...]  # the lines and columns from which and up to which it stands


def notice_divisions() -> dict[str, ModuleHook]:
    """The hook, by module, that lets callbacks remember how their frequency came about."""

    def hook(module: ModuleType) -> None:
        base = module.BaseCallback
        build = base.__init__

        @functools.wraps(build)
        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            build(self, *args, **kwargs)
            maker = _maker(sys._getframe(1), self)
            if maker is not None:
                self.memfit_divided = divided(maker.f_code.co_filename, _position(maker))

        base.__init__ = init

    return {"stable_baselines3.common.callbacks": hook}


def is_divided(callback: Any) -> bool:
    return bool(getattr(callback, "memfit_divided", False))


def divided(filename: str, position: Position) -> bool:
    """Whether the call at this place in a file is given something that was divided."""
    tree = _parsed(filename)
    call = next((n for n in ast.walk(tree) if _stands_at(n, position)), None)
    if not isinstance(call, ast.Call):
        return False
    given = [k.value for k in call.keywords if k.arg in _FREQUENCIES]
    given = given or [*call.args, *(k.value for k in call.keywords)]
    names = {name for value in given for name in _names(value)}
    assigned = (value for target, value in _assignments(tree) if names.intersection(_names(target)))
    return any(map(_divides, (*given, *assigned)))


def _maker(frame: FrameType | None, callback: Any) -> FrameType | None:
    """The frame that called the callback's class: below it are the `__init__`s of its classes."""
    while frame is not None:
        own = frame.f_code.co_varnames[: frame.f_code.co_argcount][:1]
        if not own or frame.f_locals.get(own[0]) is not callback:
            return frame
        frame = frame.f_back
    return None


def _position(frame: FrameType) -> Position:
    """Where the call stands that the frame is in."""
    instruction = frame.f_lasti // 2
    return next(islice(frame.f_code.co_positions(), instruction, None), ())


def _stands_at(node: ast.AST, position: Position) -> bool:
    return isinstance(node, ast.Call) and position == (
        *(node.lineno, node.end_lineno),
        *(node.col_offset, node.end_col_offset),
    )


def _assignments(tree: ast.AST) -> Iterator[tuple[ast.expr, ast.AST]]:
    """What is assigned to what, anywhere; of `a //= b`, the statement itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            yield from ((target, node.value) for target in node.targets)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield node.target, node.value
        elif isinstance(node, ast.AugAssign):
            yield node.target, node


def _names(node: ast.AST) -> Iterator[str]:
    """The names and attributes in an expression; of `self.freq`, the last alone."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute):
            yield part.attr
        elif isinstance(part, ast.Name) and part.id != "self":
            yield part.id


def _divides(node: ast.AST) -> bool:
    """Whether it is divided by something that has a name; a tenth of a run is no such thing."""
    for part in ast.walk(node):
        if isinstance(part, ast.BinOp | ast.AugAssign):
            by = part.right if isinstance(part, ast.BinOp) else part.value
            if isinstance(part.op, ast.FloorDiv | ast.Div) and any(_names(by)):
                return True
    return False


@cache
def _parsed(filename: str) -> ast.AST:
    try:
        return ast.parse(Path(filename).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ast.Module(body=[], type_ignores=[])
