"""MF501: a large array is made anew at every step.

What: `step`, or what makes an observation, allocates an array of 64 KiB or more.

Why: blocks of that size come from the system and go back to it at every step, zeroed each time; and
whoever keeps a few of them keeps whole arrays. One that is made once and written each time is
enough where what is returned is copied by the one who stores it, as vectorised envs do.

Bad:
    import numpy as np
    import gymnasium as gym

    class Game(gym.Env):
        def step(self, action):
            frame = np.zeros((480, 640, 3), dtype=np.uint8)
            self.draw(frame)
            return frame, 0.0, False, False, {}

Good:
    import numpy as np
    import gymnasium as gym

    class Game(gym.Env):
        def step(self, action):
            self.draw(self.frame)
            return self.frame, 0.0, False, False, {}
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.checks._arrays import made_arrays
from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, classes_with_base, methods

CODE = "MF501"
SEVERITY = Severity.INFO
_LEAST = 1 << 16
_BYTES = {"uint8": 1, "int8": 1, "bool": 1, "float16": 2, "float32": 4, "int32": 4}


def find_in_source(source: Source) -> Iterator[Spot]:
    for owner in classes_with_base(source, "Env", "Wrapper"):
        for name, method in methods(owner).items():
            if name != "step" and "obs" not in name:
                continue
            for made in made_arrays(source, method):
                size = (made.count or 0) * _BYTES.get(made.dtype, 8)
                if size >= _LEAST:
                    yield Spot(
                        made.call,
                        f"{name} makes {size >> 10:,} KiB anew each time",
                        "make it once in __init__, and write into it",
                    )
