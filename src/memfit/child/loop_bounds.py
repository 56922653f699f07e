"""The loops that a running program is in, and how far each has come, from its text and variables.

`for step in range(n)` and `while step < n` say when they end, as does `if step >= n: break` in any
other; what a bound is, the program's variables tell.
"""

from __future__ import annotations

import ast
import linecache
import operator
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

from memfit.inside.local_variables import is_memfits, local_variables
from memfit.model.trial import LoopBound

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_BARS = ("tqdm", "trange", "track")
_REPEATS = ("seed", "run", "trial", "fold", "repeat", "restart")  # each turn is a run of its own
_OPERATIONS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_CALLS = {f.__name__: f for f in (int, len, min, max, round, abs, float, range)}
_LESS, _MORE = (ast.Lt, ast.LtE, ast.NotEq), (ast.Gt, ast.GtE, ast.Eq)


def loops_of(frame: FrameType | None) -> list[tuple[LoopBound, ...]]:
    """The bounds of each loop that the program is in, the outermost first; some have none."""
    frames: list[FrameType] = []
    while frame is not None:
        if not is_memfits(frame):
            frames.append(frame)
        frame = frame.f_back
    return [bounds for one in reversed(frames) for bounds in _loops_in(one)]


def _loops_in(frame: FrameType) -> Iterator[tuple[LoopBound, ...]]:
    text = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    names = Names(ChainMap(dict(local_variables(frame)), frame.f_globals))
    for loop in _around(tree, frame):
        target = getattr(loop, "target", None)
        if any(word in _REPEATS for word in _words(target)):
            continue
        yield tuple(_bounds(loop, names))
    if _is_in_comprehension(tree, frame.f_lineno):
        yield ()


def _around(tree: ast.Module, frame: FrameType) -> Iterator[Any]:
    """The loops of the frame's own function that its line is in, the outermost first."""
    scope: ast.AST = tree
    if frame.f_code.co_name != "<module>":
        found = [n for n in ast.walk(tree) if _begins(n) == frame.f_code.co_firstlineno]
        if not found:
            return
        scope = found[0]
    body: Any = scope
    while True:
        inner = [n for n in _statements(body) if n.lineno <= frame.f_lineno <= _end(n)]
        if not inner:
            return
        body = inner[0]
        if isinstance(body, _FUNCTIONS):
            return
        first, last = body.lineno, _end(body)
        if isinstance(body, _LOOPS):
            first, last = body.body[0].lineno, _end(body.body[-1])
            if first <= frame.f_lineno <= last:
                yield body


def _is_in_comprehension(tree: ast.Module, line: int) -> bool:
    """Whether a line is one of a loop within an expression, of which nobody knows the turn."""
    found = (n for n in ast.walk(tree) if isinstance(n, _COMPREHENSIONS))
    return any(n.lineno <= line <= _end(n) for n in found)


def _begins(node: ast.AST) -> int:
    """The line that a function's code says it begins at."""
    if not isinstance(node, _FUNCTIONS):
        return 0
    decorators = getattr(node, "decorator_list", [])
    return min((n.lineno for n in decorators), default=node.lineno)


def _end(node: Any) -> int:
    return int(node.end_lineno or node.lineno)


def _statements(node: Any) -> Iterator[Any]:
    for name in ("body", "orelse", "handlers", "finalbody", "cases"):
        part = getattr(node, name, ())
        if isinstance(part, list):
            yield from part


# -- bounds ----------------------------------------------------------------------------------------


def _bounds(loop: Any, names: Names) -> Iterator[LoopBound]:
    if isinstance(loop, ast.While):
        for test in _alternatives(loop.test, ast.And):
            yield from _compared(test, names, ends=False)
    else:
        yield from _counted(loop, names)
    for condition in _breaks(loop.body):
        for test in _alternatives(condition, ast.Or):
            yield from _compared(test, names, ends=True)


def _counted(loop: Any, names: Names) -> Iterator[LoopBound]:
    over, target = loop.iter, loop.target
    if _called(over) == "enumerate" and over.args and isinstance(target, ast.Tuple):
        over, target = over.args[0], target.elts[0]
    if isinstance(over, ast.NamedExpr):
        over = over.value
    while _called(over) in _BARS and over.args:
        over = over.args[0]
    turns = names.value(over)
    if type(turns) is int and _called(loop.iter) == "trange":
        turns = range(turns)
    value = names.value(target)
    total, at = getattr(turns, "total", None), getattr(turns, "n", None)
    line = f"for {ast.unparse(loop.target)} in {ast.unparse(loop.iter)}"
    if isinstance(turns, range) and type(value) is int and value in turns:
        yield LoopBound(done=turns.index(value), total=len(turns), counts=True, line=line)
    elif type(total) is int and type(at) is int:
        yield LoopBound(done=at, total=total, counts=True, line=line)


def _compared(test: ast.expr, names: Names, *, ends: bool) -> Iterator[LoopBound]:
    """What a condition compares: the loop goes on while it holds, or ends where it does."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return
    left, right = names.value(test.left), names.value(test.comparators[0])
    rises = _MORE if ends else _LESS
    if not isinstance(test.ops[0], rises):
        left, right = right, left
        if not isinstance(test.ops[0], _LESS if ends else _MORE):
            return
    counter = test.left if isinstance(test.ops[0], rises) else test.comparators[0]
    if isinstance(counter, ast.Constant) or type(left) is not int or right is None:
        return
    if 0 < left < right and int(right) == right:
        word = "until" if ends else "while"
        line = f"{word} {ast.unparse(test)}"
        yield LoopBound(done=left, total=int(right), counts=False, line=line)


def _alternatives(test: ast.expr, kind: type[ast.boolop]) -> list[ast.expr]:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, kind):
        return test.values
    return [test]


def _breaks(body: list[ast.stmt]) -> Iterator[ast.expr]:
    """The conditions under which a loop's body leaves it."""
    for statement in body:
        if isinstance(statement, (*_LOOPS, *_FUNCTIONS, ast.ClassDef)):
            continue
        if isinstance(statement, ast.If) and any(map(_leaves, statement.body)):
            yield statement.test
        yield from _breaks([s for s in _statements(statement) if isinstance(s, ast.stmt)])


def _leaves(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Break | ast.Return)


def _called(node: Any) -> str:
    if not isinstance(node, ast.Call):
        return ""
    return str(getattr(node.func, "attr", getattr(node.func, "id", "")))


def _words(target: ast.expr | None) -> list[str]:
    return target.id.lower().split("_") if isinstance(target, ast.Name) else []


class Names:
    """The values of expressions of variables; what would call the program's code has none."""

    def __init__(self, variables: Mapping[str, Any]) -> None:
        self.variables = variables

    def value(self, node: Any) -> Any:
        """The value of an expression, None where it is not known."""
        try:
            return self._value(node)
        except Exception:  # noqa: BLE001 - whatever it is made of, it is not known then
            return None

    def _value(self, node: Any) -> Any:
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return self.variables[node.id]
            case ast.Attribute():
                return getattr(self._value(node.value), node.attr)
            case ast.Subscript():
                return self._value(node.value)[self._value(node.slice)]
            case ast.BinOp():
                apply = _OPERATIONS[type(node.op)]
                return apply(self._value(node.left), self._value(node.right))
            case ast.UnaryOp(op=ast.USub()):
                return -self._value(node.operand)
            case ast.Call(func=ast.Name(id=name)) if name in _CALLS and not node.keywords:
                return _CALLS[name](*(self._value(a) for a in node.args))
        raise LookupError
