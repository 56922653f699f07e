"""MF101: pixels are stored as floats.

What: an array for observations is made without `dtype=uint8` in a script that divides by 255, as
networks do with pixels. So each pixel takes four bytes, and eight where numpy's default holds.

Why: the rollout is four times as large as it need be. The network makes floats of a minibatch
anyway, so that the numbers stay the same to the bit (rsl_rl#212, SB3#2163).

Bad:
    import torch

    obs = torch.zeros((num_steps, num_envs) + envs.single_observation_space.shape).to(device)
    hidden = network(obs / 255.0)

Good:
    import torch

    shape = (num_steps, num_envs) + envs.single_observation_space.shape
    obs = torch.zeros(shape, dtype=torch.uint8).to(device)
    hidden = network(obs / 255.0)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memfit.checks._arrays import OBSERVATION, made_arrays, scales_images
from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, number

CODE = "MF101"
SEVERITY = Severity.WARNING
CLEAN = (
    "import torch\nobs = torch.zeros((8, 4) + envs.single_observation_space.shape)\n",
    (
        "import numpy as np\nframes = np.zeros((2, *env.observation_space.shape), np.float32)\n"
        "x = frames / 255\n"
    ),
)
_FEW = 16
_SHAPE = re.compile(r"^(single_)?observation_space$|^obs_shape$|^state_shape$")


def find_in_source(source: Source) -> Iterator[Spot]:
    if not scales_images(source):
        return
    for made in made_arrays(source):
        wide = made.dtype in ("float32", "float64")
        few = made.dims and (number(source, made.dims[0]) or _FEW + 1) <= _FEW  # the last frames
        if wide and not few and OBSERVATION.search(made.target) and made.mentions(_SHAPE):
            yield Spot(
                made.call,
                f"{made.target} holds pixels as {made.dtype}, "
                f"{8 if made.dtype == 'float64' else 4} bytes each",
                f"dtype={made.library}.uint8",
            )
