"""A rollout of 13 MiB and a small network; the size of a minibatch is the first argument."""

import sys
from typing import Any

import gymnasium
import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv


class Numbers(gymnasium.Env[Any, Any]):
    """Two hundred numbers, never the same."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (200,), np.float32)
    action_space = gymnasium.spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return self.np_random.random(200, np.float32), {}

    def step(self, action: Any) -> Any:
        return self.np_random.random(200, np.float32), 0.0, False, False, {}


batch = int(sys.argv[1])
env = DummyVecEnv([Numbers] * 8)
model = PPO("MlpPolicy", env, n_steps=2048, batch_size=batch, n_epochs=1, device="cpu")
model.learn(3 * 2048 * 8)
