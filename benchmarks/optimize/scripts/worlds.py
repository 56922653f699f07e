"""Small environments that cost next to nothing to step, of which no two steps look alike."""

from typing import Any

import gymnasium
import numpy


class Pictures(gymnasium.Env):
    """A square picture that changes with every step; what the actions do is seen in the rewards."""

    def __init__(self, side: int = 64, channels: int = 1, episode: int = 90) -> None:
        self.observation_space = gymnasium.spaces.Box(0, 255, (side, side, channels), numpy.uint8)
        self.action_space = gymnasium.spaces.Discrete(4)
        self.episode = episode
        self.steps = 0

    def picture(self) -> Any:
        shown = numpy.full(self.observation_space.shape, self.steps % 251, numpy.uint8)
        shown[self.steps % shown.shape[0]] = self.drawn
        return shown

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps = 0
        self.drawn = int(self.np_random.integers(256))
        return self.picture(), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        self.drawn = int(self.np_random.integers(256))
        ended = self.steps >= self.episode
        return self.picture(), float(int(action) == self.steps % 4), False, ended, {}


class Readings(gymnasium.Env):
    """A long vector of readings, as float32 or float64, moved by what is done."""

    def __init__(
        self, numbers: int = 1000, dtype: Any = numpy.float32, discrete: bool = True
    ) -> None:
        self.observation_space = gymnasium.spaces.Box(-10, 10, (numbers,), dtype)
        box = gymnasium.spaces.Box(-1, 1, (2,), numpy.float32)
        self.action_space = gymnasium.spaces.Discrete(3) if discrete else box
        self.steps = 0

    def read(self) -> Any:
        return (
            self.np_random.normal(size=self.observation_space.shape)
            .clip(-9, 9)
            .astype(self.observation_space.dtype)
        )

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps = 0
        return self.read(), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        reward = float(numpy.sum(action)) / 10
        return self.read(), reward, self.steps % 70 == 0, self.steps >= 120, {}
