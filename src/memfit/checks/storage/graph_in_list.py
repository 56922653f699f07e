"""MF114: losses are kept with their graph.

What: a loss goes into a list as the tensor that it is, after `backward()`.

Why: the tensor keeps the nodes of its graph alive, and what those hold, for as long as the list
lives: memory grows with every update (pymarl#73). `item()` or `detach()` keeps the number alone.

Bad:
    for batch in batches:
        loss = network(batch).mean()
        loss.backward()
        losses.append(loss)

Good:
    for batch in batches:
        loss = network(batch).mean()
        loss.backward()
        losses.append(loss.item())
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, dotted, last_name, loops_around

CODE = "MF114"
SEVERITY = Severity.WARNING
FOUND = ("for b in bs:\n    loss = f(b)\n    loss.backward()\n    total += loss\n",)
CLEAN = (
    "for b in bs:\n    part = f(b)\n    loss = g(b)\n    part.backward()\n    loss += part\n",
    (
        "for b in bs:\n    loss = f(b)\n    losses.append(loss)\n"
        "total = sum(losses)\ntotal.backward()\n"
    ),
    "def train(loss):\n    loss.backward()\n    loss = loss.item()\n    losses.append(loss)\n",
)


def find_in_source(source: Source) -> Iterator[Spot]:
    learned = {
        (source.scope(c), c.func.value.id): c
        for c in source.nodes(ast.Call)
        if isinstance(c.func, ast.Attribute)
        and c.func.attr == "backward"
        and isinstance(c.func.value, ast.Name)
    }
    for node, name in _kept(source):
        scope = source.scope(node)
        backward = learned.get((scope, name.id))
        if backward is None or backward.lineno > node.lineno:  # type: ignore[attr-defined]
            continue
        if not set(loops_around(source, backward)) & set(loops_around(source, node)):
            continue
        if len(source.bindings_in(scope, name.id)) > 1:  # loss = loss.item()
            continue
        if isinstance(node, ast.AugAssign) and _begun_anew(source, node):
            continue
        yield Spot(node, f"{name.id} is kept with its graph", f"{name.id}.item()")


def _begun_anew(source: Source, node: ast.AugAssign) -> bool:
    """Whether what is added to is made in the same loop: it is a part of one loss."""
    loop = next(iter(loops_around(source, node)), None)
    name = dotted(node.target)
    return loop is None or any(
        isinstance(n, ast.Assign) and name in map(dotted, n.targets) for n in ast.walk(loop)
    )


def _kept(source: Source) -> Iterator[tuple[ast.AST, ast.Name]]:
    for call in source.nodes(ast.Call):
        appends = last_name(call.func) == "append" and isinstance(call.func, ast.Attribute)
        if appends and len(call.args) == 1 and isinstance(call.args[0], ast.Name):
            yield call, call.args[0]
    for node in source.nodes(ast.AugAssign):
        if isinstance(node.op, ast.Add) and isinstance(node.value, ast.Name):
            yield node, node.value
