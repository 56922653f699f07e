"""MF309: a rollout ends only where an env says so.

What: `while step < target or not done`: the loop goes on after the target until an episode ends.

Why: an env that never says done, as many in trading or control do, is stepped for ever, and what is
collected grows with each step until the kernel ends the run. A limit of steps ends it in any case.

Bad:
    while step < target or not done:
        state, reward, done = env.step(action)
        trajectory.append((state, reward))
        step += 1

Good:
    while step < target:
        state, reward, done = env.step(action)
        trajectory.append((state, reward))
        step += 1
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, last_name

CODE = "MF309"
SEVERITY = Severity.WARNING
CLEAN = (
    "while step < target and not done:\n    step += 1\n",
    "while n < target or not done:\n    n += 1\n    if n > most:\n        break\n",
)
_DONE = re.compile(r"done|terminat|truncat|finished|over", re.IGNORECASE)


def find_in_source(source: Source) -> Iterator[Spot]:
    for loop in source.nodes(ast.While):
        test = loop.test
        if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.Or):
            continue
        counted = any(
            isinstance(v, ast.Compare) and isinstance(v.ops[0], ast.Lt | ast.LtE)
            for v in test.values
        )
        undone = any(
            isinstance(v, ast.UnaryOp)
            and isinstance(v.op, ast.Not)
            and _DONE.search(last_name(v.operand))
            for v in test.values
        )
        leaves = any(isinstance(n, ast.Break | ast.Return) for n in ast.walk(loop))
        if counted and undone and not leaves:
            yield Spot(
                test,
                "the loop ends only after an episode ends, and an env may never say so",
                "a limit of steps that ends it in any case",
            )
