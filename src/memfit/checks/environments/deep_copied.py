"""MF509: observations are deep-copied at every step.

What: `copy.deepcopy` of an observation or state, in a loop that steps an env or in an env's `step`.

Why: an array's own `copy()` is one block; deepcopy keeps a memo, goes through each object, and
copies what need not be. Vectorised envs copy what they are given anyway.

Bad:
    import copy

    for step in range(1_000_000):
        state, reward, done = env.step(action)
        last = copy.deepcopy(state)

Good:
    for step in range(1_000_000):
        state, reward, done = env.step(action)
        last = state.copy()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks._arrays import OBSERVATION
from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, calls, in_step_loop, last_name

CODE = "MF509"
SEVERITY = Severity.INFO
CLEAN = ("import copy\ntarget = copy.deepcopy(network)\n",)


def find_in_source(source: Source) -> Iterator[Spot]:
    for call in calls(source, ("copy",), ("deepcopy",)):
        name = last_name(call.args[0]) if call.args else ""
        function = source.function(call)
        steps = function is not None and function.name == "step" and source.class_of(function)
        often = steps or in_step_loop(source, call)
        if OBSERVATION.search(name) and often and not _has_keys(source, name):
            yield Spot(call, f"{name} is deep-copied at every step", f"{name}.copy()")


def _has_keys(source: Source, name: str) -> bool:
    """Whether it is a mapping of arrays: a copy() of that copies no array."""
    return any(
        last_name(n.value) == name and not isinstance(n.slice, ast.Slice)
        for n in source.nodes(ast.Subscript)
    )
