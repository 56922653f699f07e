"""Read a training script's text for what its first learn() cannot show."""

from __future__ import annotations

import ast
from pathlib import Path

LEARNS_IN_A_LOOP = (
    "the script calls learn() in a loop, and this plan is of its first call: where later calls "
    "train on, plan the whole length with --set total_timesteps=N"
)


def learn_calls(path: Path) -> int:
    """How many calls of learn() stand in a script; 0 where it cannot be read."""
    return sum(map(_is_learn, ast.walk(_parsed(path))))


def script_notes(path: Path) -> tuple[str, ...]:
    """What a reader of the plan should know about the rest of the script."""
    loops = (n for n in ast.walk(_parsed(path)) if isinstance(n, ast.For | ast.While))
    looped = any(_is_learn(n) for loop in loops for n in ast.walk(loop))
    return (LEARNS_IN_A_LOOP,) if looped else ()


def imports_of(path: Path) -> list[str]:
    """The modules that a script imports anywhere; none where it cannot be read."""
    found = []
    for node in ast.walk(_parsed(path)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
    return found


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
