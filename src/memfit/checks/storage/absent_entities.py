"""MF107: there are slots for entities that are absent.

What: an array has as many rows as there may ever be entities, and only those that exist are
written.

Why: a network wants the same shape each time, but a buffer need not store it: 128 slots for 12
mines are ten times what is there. The rows and their number are enough, put back to full size in a
minibatch.

Bad:
    import numpy as np

    class Env:
        def _get_obs(self):
            rows = np.zeros((self.max_mines, 6), dtype=np.float32)
            for i, mine in enumerate(self.mines):
                rows[i] = mine.features()
            return rows

Good:
    import numpy as np

    class Env:
        def _get_obs(self):
            return np.array([mine.features() for mine in self.mines], dtype=np.float32)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from memfit.checks._arrays import made_arrays
from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, dotted, last_name

CODE = "MF107"
SEVERITY = Severity.INFO
OFF = "padding is often right, since spaces have one shape"
_MOST = re.compile(r"^(max|n_max|num_max)_|_max$", re.IGNORECASE)


def find_in_source(source: Source) -> Iterator[Spot]:
    for made in made_arrays(source):
        inside = source.function(made.call)
        if inside is None or not made.dims or not _MOST.search(last_name(made.dims[0])):
            continue
        for loop in ast.walk(inside):
            if isinstance(loop, ast.For) and _fills(loop, made.target):
                yield Spot(
                    made.call,
                    f"{made.target} has {last_name(made.dims[0])} rows, of which those that exist "
                    "are written",
                    "store the rows that exist, and fill up in the minibatch",
                )
                break


def _fills(loop: ast.For, name: str) -> bool:
    counted = isinstance(loop.iter, ast.Call) and last_name(loop.iter.func) == "enumerate"
    return counted and any(
        isinstance(n, ast.Subscript)
        and isinstance(n.ctx, ast.Store)
        and dotted(n.value).split(".")[-1] == name
        for n in ast.walk(loop)
    )
