"""MF106: a space of values from 0 to 255 holds floats.

What: `spaces.Box(0, 255, shape, ...)` without `dtype=np.uint8`: the default is float32. A whole
number up to 255 fits into one byte.

Why: each observation takes four times as much in buffers, stacks, workers' shared memory and
copies. stable-baselines3 takes such a space for no image, and does not scale it.

Bad:
    import numpy as np
    from gymnasium import spaces

    observation_space = spaces.Box(low=0, high=255, shape=(84, 84, 1), dtype=np.float32)

Good:
    import numpy as np
    from gymnasium import spaces

    observation_space = spaces.Box(low=0, high=255, shape=(84, 84, 1), dtype=np.uint8)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks._arrays import dtype_name
from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Arguments, Source, argument, calls, constant

CODE = "MF106"
SEVERITY = Severity.WARNING
FOUND = ("from gym.spaces import Box\nspace = Box(0, 255, (96, 96, 3))\n",)
CLEAN = ("from gym.spaces import Box\nspace = Box(0, 255, (3,))\n",)


def find_in_source(source: Source) -> Iterator[Spot]:
    for call in calls(source, ("gymnasium", "gym"), ("Box",)):
        low, high = (constant(source, argument(call, n, i)) for i, n in enumerate(("low", "high")))
        shape, given = argument(call, "shape", 2), argument(call, "dtype", 3)
        many = isinstance(shape, ast.Tuple | ast.List) and len(shape.elts) > 1
        dtype = "float32" if given is None else dtype_name(source, given)
        certain = given is not None or Arguments(call).complete
        if (low, high) == (0, 255) and many and certain and dtype.startswith(("float", "int")):
            yield Spot(call, f"values from 0 to 255 are held as {dtype}", "dtype=np.uint8")
