"""MF102: an array of observations is float64 since no dtype is given.

What: `np.zeros(shape)` makes float64. Here it makes the observations of a buffer, which a network
then reads as float32.

Why: half of the largest array of the training holds digits that no network ever sees.

Bad:
    import numpy as np

    class ReplayBuffer:
        def __init__(self, size, obs_dim):
            self.obs = np.zeros((size, obs_dim))

Good:
    import numpy as np

    class ReplayBuffer:
        def __init__(self, size, obs_dim):
            self.obs = np.zeros((size, obs_dim), dtype=np.float32)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memfit.checks._arrays import BUFFER, OBSERVATION, made_arrays
from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, last_name, number

CODE = "MF102"
SEVERITY = Severity.WARNING
_LENGTH = re.compile(
    r"(n|num|rollout|max)_?steps|capacity|buffer_size|max_size|mem_size|horizon", re.IGNORECASE
)
_FEW = 16
_SIDE = re.compile(r"^(width|height|w|h|stack\w*|channels?|batch\w*)$", re.IGNORECASE)
CLEAN = (
    (
        "import numpy as np\nclass ReplayBuffer:\n    def __init__(self):\n"
        "        self.blank_frame = np.zeros((width, height))\n"
    ),
    "import numpy as np\nstate = np.zeros(4)\n",
    "import numpy as np\nw = np.zeros((n, 3))\n",
    (
        "import numpy as np\nclass ReplayBuffer:\n    def __init__(self):\n"
        "        self.state = np.zeros((4, 84, 84))\n"
    ),
)


def find_in_source(source: Source) -> Iterator[Spot]:
    for made in made_arrays(source):
        if made.library != "numpy" or made.dtype != "float64":
            continue
        if not OBSERVATION.search(made.target) or "stack" in made.target or not made.dims:
            continue
        owner = source.class_of(made.call)
        kept = owner is not None and BUFFER.search(owner.name) and len(made.dims) > 1
        kept = kept and (number(source, made.dims[0]) or _FEW + 1) > _FEW
        kept = kept and not any(_SIDE.search(last_name(d)) for d in made.dims[:1])
        first = last_name(made.dims[0])
        if kept or (len(made.dims) > 1 and _LENGTH.search(first)):
            yield Spot(
                made.call,
                f"{made.target} is float64: eight bytes for each number",
                "dtype=np.float32, or that of the observation space",
            )
