"""Where a node stands: the loops, with blocks and statements around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.syntax.source import FUNCTIONS, Source, last_name

Loop = ast.For | ast.AsyncFor | ast.While


def loops_around(source: Source, node: ast.AST) -> Iterator[Loop]:
    """The loops of its own function in whose body a node stands, the innermost first."""
    below = node
    for above in source.ancestors(node):
        if isinstance(above, FUNCTIONS):
            return
        if isinstance(above, Loop) and below in above.body:
            yield above
        below = above


def in_step_loop(source: Source, node: ast.AST) -> bool:
    """Whether a node is in a loop that steps an env."""
    return any(steps_env(loop) for loop in loops_around(source, node))


def steps_env(node: ast.AST) -> bool:
    """Whether an env is stepped in it: `env.step(action)`, also `self.envs.step(...)`."""
    return any(is_env_step(n) for n in ast.walk(node))


def is_env_step(node: ast.AST) -> bool:
    """Whether this is the call that steps an env."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("step", "send")
        and "env" in last_name(node.func.value).lower()
        and bool(node.args or node.keywords)
    )


def has_length(loop: ast.AST) -> bool:
    """Whether it says how many steps there will be: for ... in range(n), or while step < n."""
    if any(isinstance(n, ast.Break) for n in ast.walk(loop)):
        return False
    if isinstance(loop, ast.While):
        return any(
            isinstance(test, ast.Compare)
            and isinstance(test.ops[0], ast.Lt | ast.LtE)
            and any("step" in last_name(n).lower() for n in ast.walk(test.left))
            for test in ast.walk(loop.test)
        )
    over = loop.iter if isinstance(loop, ast.For | ast.AsyncFor) else None
    return isinstance(over, ast.Call) and last_name(over.func) in ("range", "trange")


def under_with(source: Source, node: ast.AST, *names: str) -> bool:
    """Whether a node stands under `with torch.no_grad():` or so, or in a function decorated so."""
    for above in source.ancestors(node):
        items = above.items if isinstance(above, ast.With | ast.AsyncWith) else []
        if any(_called(item.context_expr) in names for item in items):
            return True
        if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef):
            return any(_called(d) in names for d in above.decorator_list)
    return False


def enclosing(source: Source, node: ast.AST) -> ast.stmt | None:
    """The statement that a node is a part of."""
    if isinstance(node, ast.stmt):
        return node
    return next((a for a in source.ancestors(node) if isinstance(a, ast.stmt)), None)


def statements_of(node: ast.AST) -> list[list[ast.stmt]]:
    """The blocks of statements that are directly below a node."""
    found = []
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            found.append(block)
    return found


def _called(node: ast.AST) -> str:
    return last_name(node.func if isinstance(node, ast.Call) else node)
