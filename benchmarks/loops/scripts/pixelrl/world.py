"""The env of the package: a coloured picture that follows a point."""

from typing import Any

import gymnasium as gym
import numpy as np


class World(gym.Env[Any, Any]):
    """A square that is steered over a picture."""

    def __init__(self, side: int) -> None:
        self.side = side
        self.observation_space = gym.spaces.Box(0, 255, (3, side, side), np.uint8)
        self.action_space = gym.spaces.Discrete(5)
        self.place = np.zeros(2, np.int64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = self.np_random.integers(4, self.side - 4, 2)
        return self._picture(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        moves = ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0))
        self.place = np.clip(self.place + moves[int(action)], 4, self.side - 4)
        far = float(np.abs(self.place - self.side // 2).sum())
        return self._picture(), -far / self.side, far < 2, False, {}

    def _picture(self) -> Any:
        picture = np.full((3, self.side, self.side), 30, np.uint8)
        row, column = self.place
        picture[:, row - 3 : row + 3, column - 3 : column + 3] = 220
        return picture
