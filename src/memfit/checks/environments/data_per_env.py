"""MF505: every env loads the same data for itself.

What: an env reads a file in its `__init__`, and keeps what it read.

Why: a training has many envs, and each has its own copy of what none of them changes. Loaded once
and handed to all (`memfit.dropins.shared` does so across processes), it is there once.

Bad:
    import numpy as np
    import gymnasium as gym

    class Market(gym.Env):
        def __init__(self):
            self.prices = np.load("prices.npy")

Good:
    import numpy as np
    import gymnasium as gym

    class Market(gym.Env):
        def __init__(self):
            self.prices = np.load("prices.npy", mmap_mode="r")
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, classes_with_base, in_package, keyword, methods

CODE = "MF505"
SEVERITY = Severity.INFO
_LOADS = {
    "numpy": ("load", "loadtxt", "genfromtxt", "fromfile"),
    "pandas": ("read_csv", "read_parquet", "read_pickle", "read_hdf", "read_excel"),
    "polars": ("read_csv", "read_parquet"),
}


def find_in_source(source: Source) -> Iterator[Spot]:
    for owner in classes_with_base(source, "Env"):
        begin = methods(owner).get("__init__")
        for node in ast.walk(begin) if begin is not None else []:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
                for call in ast.walk(node.value):
                    if isinstance(call, ast.Call) and _loads(source, call):
                        yield Spot(
                            call,
                            f"each env has its own copy in {source.segment(node.targets[0])}",
                            'mmap_mode="r", or one copy for all: memfit.dropins.shared',
                        )


def _loads(source: Source, call: ast.Call) -> bool:
    if keyword(call, "mmap_mode") is not None or keyword(call, "memory_map") is not None:
        return False
    return any(in_package(source, call.func, (p,), names) for p, names in _LOADS.items())
