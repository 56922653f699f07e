"""MF109: a buffer is filled when it is made.

What: a buffer is made with `np.full`, `np.ones` or their like, so that every page of it is written
at once.

Why: numpy's zeros cost nothing until they are written. A buffer of ones or NaN is resident as a
whole from the start: what would fit while it fills does not even start.

Bad:
    import numpy as np

    class ReplayBuffer:
        def __init__(self, capacity, dim):
            self.obs = np.full((capacity, dim), np.nan, dtype=np.float32)

        def sample(self, n):
            return self.obs[np.random.randint(0, self.count, n)]

Good:
    import numpy as np

    class ReplayBuffer:
        def __init__(self, capacity, dim):
            self.obs = np.zeros((capacity, dim), dtype=np.float32)

        def sample(self, n):
            return self.obs[np.random.randint(0, self.count, n)]
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memfit.checks._arrays import made_arrays
from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, argument, constant, methods

CODE = "MF109"
SEVERITY = Severity.INFO
_LARGE = 10_000_000  # elements
# What fills slowly and is sampled: a rollout is written whole in each iteration anyway.
_SLOW = re.compile(r"replay|memory", re.IGNORECASE)
_CAPACITY = re.compile(r"capacity|(buffer|max|mem|memory)_size|maxlen", re.IGNORECASE)
_FLAGS = re.compile(r"mask|done|active|avail|pad", re.IGNORECASE)
CLEAN = (
    (
        "import numpy as np\nclass ReplayBuffer:\n    def __init__(self, max_size):\n"
        "        self.v = np.ones((max_size, 8, 1))\n    def all(self):\n        return self.v\n"
    ),
    (
        "import numpy as np\nclass RolloutBuffer:\n    def __init__(self, size):\n"
        "        self.masks = np.ones((size, 8, 1))\n"
    ),
    "import numpy as np\nweights = np.ones((capacity, 4))\n",
)


def find_in_source(source: Source) -> Iterator[Spot]:
    for made in made_arrays(source):
        if made.how not in ("full", "ones"):
            continue
        if made.how == "full" and constant(source, argument(made.call, "fill_value", 1)) in (
            0,
            0.0,
        ):
            continue
        owner = source.class_of(made.call)
        kept = owner is not None and _SLOW.search(owner.name) and made.mentions(_CAPACITY)
        kept = kept and owner is not None and any("sample" in name for name in methods(owner))
        wide = len(made.dims) > 1 and not _FLAGS.search(made.target)
        if made.library == "numpy" and ((kept and wide) or (made.count or 0) >= _LARGE):
            yield Spot(
                made.call,
                f"{made.target or 'the array'} is written whole when it is made, so that all of it "
                "is resident at once",
                f"{made.library}.zeros, and remember how many rows are filled",
            )
