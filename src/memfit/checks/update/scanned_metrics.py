"""MF205: metrics of all updates are stacked.

What: `jax.lax.scan` goes over all updates of the training, and its function returns more than the
carry: what it returns is stacked, for each step of each rollout of each update.

Why: that output grows with the length of the run, and is allocated as a whole when the program
starts: a run of more steps does not fit though nothing of it is larger (purejaxrl#38). A mean for
each update, or a callback, is enough for a curve.

Bad:
    import jax

    def update(state, _):
        state, info = rollout_and_learn(state)
        metric = info
        return state, metric

    state, metrics = jax.lax.scan(update, state, None, num_updates)

Good:
    import jax

    def update(state, _):
        state, info = rollout_and_learn(state)
        return state, info["return"].mean()

    state, means = jax.lax.scan(update, state, None, num_updates)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, argument, calls, constant

CODE = "MF205"
SEVERITY = Severity.WARNING
CLEAN = (
    (
        "import jax\ndef f(s, _):\n    m = t.info\n    m = jax.tree.map(lambda x: x.mean(), m)\n"
        "    return s, m\njax.lax.scan(f, s, None, num_updates)\n"
    ),
    "import jax\ndef f(s, _):\n    return s, None\njax.lax.scan(f, s, None, num_updates)\n",
    "import jax\ndef f(s, _):\n    return s, t\njax.lax.scan(f, s, None, num_steps)\n",
)
_REDUCE = {"mean", "sum", "max", "min", "std", "nanmean", "nansum"}
_UPDATES = re.compile(r"num_?updates|n_updates|num_iterations", re.IGNORECASE)


def find_in_source(source: Source) -> Iterator[Spot]:
    for call in calls(source, ("jax",), ("scan",)):
        length = argument(call, "length", 3)
        function = source.definition(argument(call, "f", 0))
        if length is None or not isinstance(function, ast.FunctionDef):
            continue
        if not _UPDATES.search(ast.unparse(length)):
            continue
        stacked = [name for name in _returned(source, function) if name]
        if stacked:
            yield Spot(
                call,
                f"{stacked[0]} is stacked for every update of the run",
                "return a mean for each update, or use jax.debug.callback",
            )


def _returned(source: Source, function: ast.FunctionDef) -> Iterator[str]:
    """Names that are returned beside the carry as they are."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Return) or source.function(node) is not function:
            continue
        if isinstance(node.value, ast.Tuple) and len(node.value.elts) == 2:
            second = node.value.elts[1]
            if isinstance(second, ast.Name) and constant(source, second) is None:
                # Where a mean takes its place anywhere, that is often what is returned.
                given = [b.value for b in source.bindings(second) if b.value is not None]
                yield "" if not given or any(map(_is_small, given)) else second.id


def _is_small(value: ast.expr) -> bool:
    """Whether it was reduced already: a mean, a sum, or a mapping of such."""
    names = {n.attr for n in ast.walk(value) if isinstance(n, ast.Attribute)}
    return bool(names & _REDUCE) or isinstance(value, ast.Constant)
