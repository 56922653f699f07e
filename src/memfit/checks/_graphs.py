"""Values that may hold a graph of torch: what a network made, and what outlives a loop's round."""

from __future__ import annotations

import ast
import re

from memfit.syntax import Source, dotted, last_name, loops_around, origins, under_with

_DATA = {
    "to",
    "cuda",
    "reset",
    "make",
    "sample",
    "randn",
    "tensor",
    "as_tensor",
    "from_numpy",
    "float",
}
_NETWORK = re.compile(r"^(forward|encode\w*|\w*(rnn|lstm|gru|cell|net|network|model|actor))$")


def is_made(source: Source, call: ast.Call, value: ast.expr) -> bool:
    """Whether a network made it on the way: what is stacked is then a part of its graph."""
    if under_with(source, call, "no_grad", "inference_mode"):
        return False
    for given in origins(source, value):
        called = given.func if isinstance(given, ast.Call) else None
        if called is not None and _NETWORK.search(last_name(called)):
            return True
    return False


def comes_from_before(source: Source, call: ast.Call) -> bool:
    """Whether the loss may hold a graph that was made before the loop, or the round before it.

    Each round then goes through it again, and only the last one could do without.
    """
    loop = next(iter(loops_around(source, call)), None)
    if loop is None or not isinstance(call.func, ast.Attribute):
        return False
    inside = list(ast.walk(loop))
    around = list(ast.walk(source.function(call) or loop))
    names, waiting = set(), [call.func.value]
    while waiting:  # all that the loss is made of, in this loop
        node = waiting.pop()
        for n in ast.walk(node):
            if isinstance(n, ast.Attribute) and any(_stores(m, dotted(n)) for m in around):
                return True  # self.hidden
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id not in names:
                names.add(n.id)
                waiting += [
                    b.value for b in source.bindings(n) if b.value is not None and b.value in inside
                ]
    before = [
        b.value
        for n in ast.walk(loop)
        if isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load)
        for b in source.bindings(n)
        if b.value is not None and b.value not in inside
    ]
    return any(isinstance(v, ast.Call) and not _makes(source, v) for v in before)


def comes_from_caller(source: Source, call: ast.Call) -> bool:
    """Whether the loss is worked out from a parameter, whose graph the caller may use again.

    What is only given to a network, as observations are, has no graph.
    """
    inside = source.function(call)
    if inside is None or not isinstance(call.func, ast.Attribute):
        return False
    parameters = {a.arg for a in ast.walk(inside.args) if isinstance(a, ast.arg)} - {"self"}
    seen: set[str] = set()
    waiting: list[ast.AST] = [call.func.value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call) and not _works_out(source, node):
            waiting.append(node.func)
            continue
        if isinstance(node, ast.Name) and node.id not in seen:
            seen.add(node.id)
            if node.id in parameters:
                return True
            waiting += [b.value for b in source.bindings(node) if b.value is not None]
        waiting += ast.iter_child_nodes(node)
    return False


def _works_out(source: Source, call: ast.Call) -> bool:
    """Whether it is a function of numbers, not a network."""
    made = last_name(call.func).lower()
    return source.qualified(call.func).startswith("torch") or made.endswith(("loss", "criterion"))


def _makes(source: Source, call: ast.Call) -> bool:
    """Whether it makes an object (`Policy(3)`), data or an optimizer, and no part of a graph."""
    made = last_name(call.func)
    return made[:1].isupper() or made in _DATA or source.qualified(call.func).startswith("numpy")


def _stores(node: ast.AST, name: str) -> bool:
    return (
        isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and dotted(node) == name
    )
