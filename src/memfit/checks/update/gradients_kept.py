"""MF208: gradients are kept as zeros between updates.

What: `zero_grad(set_to_none=False)`.

Why: the gradients, as large as the networks, then stay allocated while the rollout is collected.
Without the argument they are freed, and numbers of the training are the same, save for optimizers
that take part in steps without a gradient.

Bad:
    optimizer.zero_grad(set_to_none=False)

Good:
    optimizer.zero_grad()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, argument, constant, last_name

CODE = "MF208"
SEVERITY = Severity.INFO


def find_in_source(source: Source) -> Iterator[Spot]:
    for call in source.nodes(ast.Call):
        given = argument(call, "set_to_none", 0)
        if last_name(call.func) == "zero_grad" and constant(source, given) is False:
            yield Spot(call, "gradients stay allocated between updates", "zero_grad()")
