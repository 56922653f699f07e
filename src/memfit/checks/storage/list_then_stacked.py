"""MF115: a rollout is a list first, and then an array beside it.

What: observations are added to a list at every step, and the list is made one array or tensor. Only
loops are meant whose length is known before they begin: the array can then be made as long.

Why: for that moment, and as long as the list has a name, the rollout is there twice; as a list it
also has an object and a block for every step. An array that is written by step is there once.

Bad:
    import torch

    states = []
    for step in range(100):
        states.append(state.clone())
        state, reward = env.step(action)
    batch = torch.stack(states)

Good:
    import torch

    states = torch.empty(100, *state.shape)
    for step in range(100):
        states[step] = state
        state, reward = env.step(action)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from memfit.checks._graphs import is_made
from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import (
    Source,
    classes_with_base,
    has_length,
    in_package,
    is_env_step,
    last_name,
    loops_around,
    steps_env,
)

CODE = "MF115"
SEVERITY = Severity.INFO
_JOINS = {"stack", "cat", "concatenate", "array", "asarray", "vstack", "tensor", "FloatTensor"}
_STATES = re.compile(r"(^|_)(obs|observations?|states?)($|_|\d)", re.IGNORECASE)  # no video
_COUNTS = re.compile(r"count|visit|num_|_num|index|ids?$", re.IGNORECASE)
_DRAWS = re.compile(r"plot|visual|draw|render|show|scatter|imsave|gif", re.IGNORECASE)
_WHOLE = re.compile(r"^(trajectory|transitions|rollout)$", re.IGNORECASE)
CLEAN = (
    (
        "import numpy as np\nobs = []\nfor i in range(99):\n    obs.append(o)\n"
        "    o, r, done, _ = env.step(a)\n    if done:\n        break\nx = np.array(obs)\n"
    ),
    (
        "import torch\nstates = []\nfor i in range(9):\n    state = self.rnn(o, state)\n"
        "    states.append(state)\n    o, r, done, _ = env.step(a)\nx = torch.stack(states)\n"
    ),
)


def find_in_source(source: Source) -> Iterator[Spot]:
    grown = {
        (source.scope(c), c.func.value.id)
        for c in source.nodes(ast.Call)
        if isinstance(c.func, ast.Attribute)
        and c.func.attr == "append"
        and isinstance(c.func.value, ast.Name)
        and _by_step(source, c)
        and not any(is_made(source, c, v) for v in c.args)
    }
    wrappers = set(classes_with_base(source, "Env", "Wrapper"))
    for call in source.nodes(ast.Call):
        if not in_package(source, call.func, ("torch", "numpy"), _JOINS) or not call.args:
            continue
        drawn = _DRAWS.search(last_name(getattr(source.parent(call), "func", None)))
        if drawn or source.class_of(call) in wrappers:  # a few frames that are skipped
            continue
        name, scope = _joined(source, call), source.scope(call)
        if name and (scope, name) in grown and not any(map(steps_env, _loops(source, call, name))):
            yield Spot(
                call,
                f"{name} is a list of every step, and is then copied into one "
                f"{'tensor' if source.qualified(call.func).startswith('torch') else 'array'}",
                f"make {name} once, and write each step into it",
            )


def _by_step(source: Source, call: ast.Call) -> bool:
    """Whether it is added in the very loop that steps an env, and not in one around that."""
    loop = next(iter(loops_around(source, call)), None)
    return (
        loop is not None
        and has_length(loop)
        and any(
            is_env_step(n) and next(iter(loops_around(source, n)), None) is loop
            for n in ast.walk(loop)
        )
    )


def _joined(source: Source, call: ast.Call) -> str:
    first = call.args[0]
    if isinstance(first, ast.Name) and _STATES.search(first.id):
        return "" if _COUNTS.search(first.id) else first.id
    above = source.parent(call)  # [torch.stack(column) for column in zip(*trajectory)]
    if isinstance(above, ast.ListComp) and isinstance(first, ast.Name):
        over = above.generators[0].iter
        if isinstance(over, ast.Call) and last_name(over.func) == "zip" and over.args:
            inner = over.args[0]
            named = last_name(inner.value) if isinstance(inner, ast.Starred) else ""
            return named if _WHOLE.search(named) else ""
    return ""


def _loops(source: Source, call: ast.Call, name: str) -> list[ast.AST]:
    """The loops around a join that do not make the list anew: it is joined again and again."""
    return [
        a
        for a in source.ancestors(call)
        if isinstance(a, ast.For | ast.While)
        and not any(
            isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
            for n in ast.walk(a)
        )
    ]
