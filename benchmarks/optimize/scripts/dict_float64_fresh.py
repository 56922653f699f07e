"""PPO on a dictionary of readings whose numbers are numpy's float64."""

import gymnasium as gym
import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env


class Robot(gym.Env):
    def __init__(self):
        self.observation_space = gym.spaces.Dict(
            {
                "lidar": gym.spaces.Box(0.0, 1.0, (1080,), np.float64),
                "speed": gym.spaces.Box(-1.0, 1.0, (3,), np.float64),
            }
        )
        self.action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def _look(self):
        return {"lidar": self.np_random.random(1080), "speed": self.np_random.random(3)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 200
        return self._look(), {}

    def step(self, action):
        self.left -= 1
        return self._look(), float(action.sum()), False, self.left <= 0, {}


if __name__ == "__main__":
    envs = make_vec_env(Robot, n_envs=6, seed=1)
    model = PPO("MultiInputPolicy", envs, n_steps=512, batch_size=512, n_epochs=1)
    model.learn(total_timesteps=200_000)
