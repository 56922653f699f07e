"""Small environments that cost next to nothing to step."""

from typing import Any

import gymnasium
import numpy


class Frames(gymnasium.Env):
    """A square picture that changes with every step; a hundred steps an episode."""

    def __init__(self, side: int = 64, channels: int = 3, channels_first: bool = False) -> None:
        shape = (channels, side, side) if channels_first else (side, side, channels)
        self.observation_space = gymnasium.spaces.Box(0, 255, shape, numpy.uint8)
        self.action_space = gymnasium.spaces.Discrete(3)
        self.steps = 0

    def picture(self) -> Any:
        return numpy.full(self.observation_space.shape, self.steps % 251, numpy.uint8)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps = 1
        return self.picture(), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return self.picture(), 0.0, False, self.steps > 100, {}


class Sensors(gymnasium.Env):
    """A Dict: a picture, a long vector and a few numbers."""

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Dict(
            {
                "camera": gymnasium.spaces.Box(0, 255, (48, 48, 3), numpy.uint8),
                "history": gymnasium.spaces.Box(-1, 1, (600,), numpy.float32),
                "pose": gymnasium.spaces.Box(-1, 1, (6,), numpy.float32),
            }
        )
        self.action_space = gymnasium.spaces.Box(-1, 1, (2,), numpy.float32)
        self.steps = 0

    def look(self) -> Any:
        return {
            "camera": numpy.full((48, 48, 3), self.steps % 251, numpy.uint8),
            "history": numpy.full(600, self.steps / 100, numpy.float32),
            "pose": numpy.zeros(6, numpy.float32),
        }

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps = 0
        return self.look(), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return self.look(), 0.0, False, self.steps >= 100, {}
