"""A tiny game with pictures: a dot is to be brought to the edge on which the light is."""

import gymnasium as gym
import numpy as np

SIZE = 36


class MyGame(gym.Env):
    """Move left or right; pictures of 36 by 36 pixels."""

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(0, 255, (SIZE, SIZE, 1), np.uint8)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = SIZE // 2
        self.light = int(self.np_random.integers(2)) * (SIZE - 1)
        return self._picture(), {}

    def step(self, action):
        self.x += 1 if action == 1 else -1
        done = self.x in (0, SIZE - 1)
        return self._picture(), float(done and self.x == self.light), done, False, {}

    def _picture(self):
        picture = np.zeros((SIZE, SIZE, 1), np.uint8)
        picture[:, self.light] = 128
        picture[SIZE // 2, self.x] = 255
        return picture


def make_env() -> gym.Env:
    """What `memfit profile my_game:make_env` calls."""
    return MyGame()
