"""MaskablePPO on stacked frames."""

from typing import Any

import numpy
from sb3_contrib import MaskablePPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecFrameStack
from worlds import Pictures


class Masked(Pictures):
    def action_masks(self) -> Any:
        return numpy.array([True, True, self.steps % 2 == 0, True])


env = VecFrameStack(make_vec_env(Masked, n_envs=4), n_stack=4)
model = MaskablePPO("CnnPolicy", env, n_steps=128, batch_size=64, n_epochs=1, seed=4, device="cpu")
model.learn(50_000)
