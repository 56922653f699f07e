"""MF112: the replay of images has the size that is the default for vectors.

What: an off-policy model of stable-baselines3 learns from images, and its replay has room for half
a million steps or more, often since 1,000,000 is the default.

Why: a million Atari stacks of 84 by 84 by 4 are 28 GB, and 56 with the next observations. They
become resident as the replay fills, so that the run dies hours after its start (SB3#37).

Bad:
    from stable_baselines3 import DQN

    model = DQN("CnnPolicy", env)

Good:
    from stable_baselines3 import DQN

    model = DQN("CnnPolicy", env, buffer_size=100_000)
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.checks._sb3 import models
from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source

CODE = "MF112"
SEVERITY = Severity.WARNING
_MANY = 500_000
CLEAN = (
    (
        "from stable_baselines3 import DQN\n"
        "model = DQN('CnnPolicy', env)\nmodel.learn(total_timesteps=20_000)\n"
    ),
    "from stable_baselines3 import SAC\nmodel = SAC('MlpPolicy', env)\n",
)


def find_in_source(source: Source) -> Iterator[Spot]:
    for model in models(source):
        size = model.buffer_size
        if model.on_policy or size is None or not model.policy.startswith("Cnn"):
            continue
        own = not (model.lacks("replay_buffer_class") and model.lacks("optimize_memory_usage"))
        filled = size if model.total is None else min(size, model.total)
        if filled >= _MANY and not own:
            yield Spot(
                model.call,
                f"the replay has room for {size:,} images, and stores each one twice",
                "buffer_size=100_000, or replay_buffer_class=memfit.dropins.WindowReplayBuffer",
            )
