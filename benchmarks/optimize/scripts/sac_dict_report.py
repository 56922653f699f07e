"""SAC on a Dict of two parts: optimize_memory_usage is refused for these."""

import gymnasium as gym
import numpy as np
from stable_baselines3 import SAC
from stable_baselines3.common.vec_env import DummyVecEnv


class Arm(gym.Env):
    def __init__(self):
        self.observation_space = gym.spaces.Dict(
            {
                "joints": gym.spaces.Box(-3, 3, (24,), np.float32),
                "scan": gym.spaces.Box(0, 1, (2400,), np.float32),
            }
        )
        self.action_space = gym.spaces.Box(-1, 1, (4,), np.float32)

    def look(self):
        rng = self.np_random
        return {
            "joints": rng.uniform(-3, 3, 24).astype(np.float32),
            "scan": rng.random(2400, dtype=np.float32),
        }

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 60
        return self.look(), {}

    def step(self, action):
        self.left -= 1
        return self.look(), -float(np.square(action).sum()), False, self.left == 0, {}


model = SAC("MultiInputPolicy", DummyVecEnv([Arm]), buffer_size=14_000, seed=9, batch_size=64)
model.learn(30_000)
