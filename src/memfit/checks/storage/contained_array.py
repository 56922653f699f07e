"""MF104: one array is copied into another that contains it.

What: a class keeps an array, and at every step copies the whole of it into a part of another one
that it keeps too.

Why: the first one is there twice. Written where it ends up, it need not be kept: `imu_history`
beside `observations` that contain it was 46 % of the state of a drone.

Bad:
    import numpy as np

    class Env:
        def __init__(self, n):
            self.history = np.zeros((n, 300, 6), dtype=np.float32)
            self.observations = np.zeros((n, 1804), dtype=np.float32)

        def observe(self):
            self.observations[:, :1800] = self.history.reshape(len(self.history), -1)

Good:
    import numpy as np

    class Env:
        def __init__(self, n):
            self.observations = np.zeros((n, 1804), dtype=np.float32)

        @property
        def history(self):
            return self.observations[:, :1800].reshape(-1, 300, 6)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks._arrays import made_arrays
from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, dotted

CODE = "MF104"
SEVERITY = Severity.WARNING
_SHAPES = {"reshape", "flatten", "ravel", "view", "astype"}


def find_in_source(source: Source) -> Iterator[Spot]:
    for node in source.nodes(ast.Assign):
        target = node.targets[0]
        owner = source.class_of(node)
        if owner is None or not isinstance(target, ast.Subscript) or not _sliced(target.slice):
            continue
        into, taken = dotted(target.value), dotted(_unshaped(node.value))
        kept = {m.target for m in made_arrays(source, owner) if len(m.dims) > 1}
        names = {name.removeprefix("self.") for name in (into, taken) if name.startswith("self.")}
        if len(names) == 2 and names <= kept:
            yield Spot(
                node,
                f"{taken} is kept, and is copied whole into {into} as well",
                f"write into {into} directly, and make {taken} a view of it",
            )


def _unshaped(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr not in _SHAPES:
            return node
        node = node.func.value
    return node


def _sliced(index: ast.expr) -> bool:
    """Whether a range is written to, and not one row."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(isinstance(p, ast.Slice | ast.Constant) for p in parts) and any(
        isinstance(p, ast.Slice) for p in parts
    )
