"""PPO on a LightVecEnv whose envs each hold 3 MiB: ppo_light.py N_ENVS."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from stable_baselines3 import PPO

from memfit.dropins import LightVecEnv

SHAPE = (4, 64, 64)


class Holding(gymnasium.Env[Any, Any]):
    """Pictures of one colour; each env has a table of its own."""

    observation_space = spaces.Box(0, 255, SHAPE, np.uint8)
    action_space = spaces.Discrete(3)

    def __init__(self) -> None:
        self.table = np.ones(3 * 2**20, np.uint8)
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(SHAPE, np.uint8), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return np.full(SHAPE, self.steps % 256, np.uint8), 0.0, False, self.steps >= 50, {}


if __name__ == "__main__":
    envs = int(sys.argv[1])
    env = LightVecEnv([Holding] * envs, workers=2)
    PPO("CnnPolicy", env, n_steps=64, batch_size=64, n_epochs=1, device="cpu").learn(128 * envs)
