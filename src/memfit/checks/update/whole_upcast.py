"""MF206: the whole rollout is made floats before its minibatches are.

What: all observations are divided by 255 or converted to float, and then gathered by minibatch.

Why: the copy is four times as large as bytes are, and is there during the whole update. A minibatch
converted where it is used takes the same numbers from a few samples.

Bad:
    b_obs = obs.reshape(-1, 4, 84, 84).float() / 255.0
    for epoch in range(4):
        for chosen in minibatches():
            loss_of(network(b_obs[chosen])).backward()

Good:
    b_obs = obs.reshape(-1, 4, 84, 84)
    for epoch in range(4):
        for chosen in minibatches():
            loss_of(network(b_obs[chosen].float() / 255.0)).backward()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks._arrays import OBSERVATION
from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, last_name, loops_around

CODE = "MF206"
SEVERITY = Severity.WARNING


def find_in_source(source: Source) -> Iterator[Spot]:
    for node in source.nodes(ast.Assign):
        target = node.targets[0]
        if not isinstance(target, ast.Name) or not OBSERVATION.search(target.id):
            continue
        if _widens(node.value) and _gathered(source, node, target.id):
            yield Spot(
                node,
                f"{target.id} is a copy of all observations as floats",
                f"convert {target.id}[...] where a minibatch of it is used",
            )


def _widens(value: ast.expr) -> bool:
    """Whether bytes become floats: x / 255, or x.float() of what is divided there too."""
    return (
        isinstance(value, ast.BinOp)
        and isinstance(value.op, ast.Div)
        and isinstance(value.right, ast.Constant)
        and value.right.value in (255, 255.0)
    )


def _gathered(source: Source, node: ast.Assign, name: str) -> bool:
    """Whether minibatches are taken of it, in a deeper loop that learns."""
    own = set(loops_around(source, node))
    for read in source.nodes(ast.Subscript):
        if last_name(read.value) != name or source.scope(read) is not source.scope(node):
            continue
        deeper = [loop for loop in loops_around(source, read) if loop not in own]
        if any(_learns(loop) for loop in deeper):
            return True
    return False


def _learns(loop: ast.AST) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in ast.walk(loop))
