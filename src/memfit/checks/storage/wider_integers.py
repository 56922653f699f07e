"""MF118: whole numbers are held in more bytes than they need.

What: a `Box` of a small range, such as 0 to 9, has a type of 4 or 8 bytes (`int32`, `int64`).

Why: buffers, stacks and copies hold observations in the type of the space. A board of kinds of
tiles as int64 takes eight times what it does as uint8, which holds the same numbers.

Bad:
    import numpy as np
    from gymnasium import spaces

    observation_space = spaces.Box(low=0, high=9, shape=(20, 20), dtype=np.int64)

Good:
    import numpy as np
    from gymnasium import spaces

    observation_space = spaces.Box(low=0, high=9, shape=(20, 20), dtype=np.uint8)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks._arrays import dtype_name
from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, argument, calls, constant, number

CODE = "MF118"
SEVERITY = Severity.INFO
OFF = "what an env gives is often outside of the range that its space says"
FOUND = (
    (
        "import numpy as np\nfrom gym.spaces import Box\n"
        "space = Box(-1, 3, (height, width), np.int32)\n"
    ),
)
CLEAN = (
    "import numpy as np\nfrom gym.spaces import Box\nspace = Box(0, 9, (3,), dtype=np.int64)\n",
    "import numpy as np\nfrom gym.spaces import Box\ns = Box(0, 90_000, (9, 9), dtype=np.int32)\n",
    "import numpy as np\nfrom gym.spaces import Box\ns = Box(0, top, (9, 9), dtype=np.int32)\n",
)
_WIDE = {"int": 8, "int64": 8, "uint64": 8, "int_": 8, "int32": 4, "uint32": 4}
_RANGES = {"uint8": (0, 255), "int8": (-128, 127)}
_LEAST = 64  # elements


def find_in_source(source: Source) -> Iterator[Spot]:
    for call in calls(source, ("gymnasium", "gym"), ("Box",)):
        low, high = (constant(source, argument(call, n, i)) for i, n in enumerate(("low", "high")))
        shape, given = argument(call, "shape", 2), argument(call, "dtype", 3)
        if given is None or not isinstance(shape, ast.Tuple | ast.List):
            continue
        if not all(isinstance(v, int | float) for v in (low, high)) or (low, high) == (0, 255):
            continue  # from 0 to 255 it is MF106's
        wide = dtype_name(source, given)
        narrow = next((n for n, (a, b) in _RANGES.items() if a <= low and high <= b), "")
        if wide in _WIDE and narrow and _many(source, shape):
            yield Spot(
                call,
                f"whole numbers from {low:g} to {high:g} are held as {wide}, in {_WIDE[wide]} "
                "bytes each",
                f"dtype=np.{narrow}, here and where observations are made",
            )


def _many(source: Source, shape: ast.Tuple | ast.List) -> bool:
    total = 1
    for dim in shape.elts:
        size = number(source, dim)
        if size is None:
            return len(shape.elts) > 1
        total *= size
    return total >= _LEAST
