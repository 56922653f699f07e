"""Read a training script's text for what its first learn() cannot show."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TypeGuard

LEARNS_IN_A_LOOP = (
    "the script calls learn() in a loop, and this plan is of its first call: where later calls "
    "train on, plan the whole length with --set total_timesteps=N"
)

# Calls after learn() that take next to nothing.
_SMALL = {
    *(
        "print",
        "close",
        "save",
        "exit",
        "info",
        "debug",
        "warning",
        "log",
        "format",
        "join",
        "main",
    ),
    *("time", "perf_counter", "round", "str", "len", "range", "item", "mean", "finish", "flush"),
}
_MOST_NAMES = 4


def learn_calls(path: Path) -> int:
    """How many calls of learn() stand in a script; 0 where it cannot be read."""
    return sum(map(_is_learn, ast.walk(_parsed(path))))


def learns_again(path: Path) -> bool:
    """Whether a script calls learn() more than once, or in a loop."""
    return learn_calls(path) > 1 or _learns_in_a_loop(_parsed(path))


def script_notes(path: Path) -> tuple[str, ...]:
    """What a reader of the plan should know about the rest of the script."""
    return (LEARNS_IN_A_LOOP,) if _learns_in_a_loop(_parsed(path)) else ()


def goes_on_after(path: Path) -> str:
    """Where a script goes on after its last learn(), and with what; empty where it does not."""
    rest = [s for s in _after_learning(_parsed(path)) if set(_called(s)) - _SMALL]
    if not rest:
        return ""
    names = list(dict.fromkeys(name for s in rest for name in _called(s) if name not in _SMALL))
    shown = ", ".join(f"{name}()" for name in names[:_MOST_NAMES])
    more = ", ..." if len(names) > _MOST_NAMES else ""
    return f"from line {rest[0].lineno} ({shown}{more})"


def is_counted_loop(path: Path, line: int) -> bool:
    """Whether a line is in a `for` that nothing breaks off: it goes on as often as it says."""
    around = [n for n in ast.walk(_parsed(path)) if _is_loop_around(n, line)]
    if not around:
        return False
    nearest = max(around, key=lambda n: n.lineno)
    breaks = any(isinstance(n, ast.Break | ast.Return) for n in ast.walk(nearest))
    return isinstance(nearest, ast.For) and not breaks


def imports_of(path: Path) -> list[str]:
    """The modules that a script imports anywhere; none where it cannot be read."""
    found = []
    for node in ast.walk(_parsed(path)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
    return found


def _is_loop_around(node: ast.AST, line: int) -> TypeGuard[ast.For | ast.While]:
    if not isinstance(node, ast.For | ast.While):
        return False
    return node.lineno <= line <= (node.end_lineno or 0)


def _learns_in_a_loop(tree: ast.AST) -> bool:
    loops = (n for n in ast.walk(tree) if isinstance(n, ast.For | ast.While))
    return any(_is_learn(n) for loop in loops for n in ast.walk(loop))


def _after_learning(tree: ast.AST) -> list[ast.stmt]:
    """The statements that follow the last call of learn(), in its own body and those around it."""
    found: list[ast.stmt] = []
    for node in ast.walk(tree):
        for body in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
            if isinstance(body, list):
                learns = [i for i, s in enumerate(body) if any(map(_is_learn, ast.walk(s)))]
                found += body[learns[-1] + 1 :] if learns else []
    return found


def _called(statement: ast.stmt) -> list[str]:
    """The names of functions that a statement calls; a definition calls none."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return []
    calls = [node.func for node in ast.walk(statement) if isinstance(node, ast.Call)]
    names = [getattr(f, "attr", getattr(f, "id", "")) for f in calls]
    return [name for name in names if name]


def _parsed(path: Path) -> ast.AST:
    try:
        return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ast.Module(body=[], type_ignores=[])


def _is_learn(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "learn"
    )
