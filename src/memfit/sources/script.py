"""Read a training script's text for what its first learn() cannot show."""

from __future__ import annotations

import ast
from pathlib import Path

LEARNS_AGAIN = (
    "the script calls learn() more than once, and this plan is of the first call alone: where later "
    "calls train on, plan the whole length with --set total_timesteps=N; another model that is "
    "trained beside this one adds its own memory"
)


def notes(path: Path) -> tuple[str, ...]:
    """What a reader of the plan should know about the rest of the script."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ()
    return (LEARNS_AGAIN,) if learns_again(tree) else ()


def learns_again(tree: ast.AST) -> bool:
    """Whether a script calls learn() twice, or in a loop."""
    calls = list(filter(_is_learn, ast.walk(tree)))
    loops = (n for n in ast.walk(tree) if isinstance(n, ast.For | ast.While))
    return len(calls) > 1 or any(_is_learn(n) for loop in loops for n in ast.walk(loop))


def _is_learn(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "learn"
    )
