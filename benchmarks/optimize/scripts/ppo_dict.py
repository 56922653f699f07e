"""PPO on a Dict: a picture and a state, of four envs."""

from typing import Any

import gymnasium
import numpy
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv
from worlds import Pictures


class Robot(Pictures):
    def __init__(self) -> None:
        super().__init__(side=72, channels=3)
        state = gymnasium.spaces.Box(-1, 1, (200,), numpy.float32)
        self.picture_space = self.observation_space
        spaces = {"camera": self.picture_space, "state": state}
        self.observation_space = gymnasium.spaces.Dict(spaces)

    def picture(self) -> Any:
        shown = numpy.full(self.picture_space.shape, self.steps % 200, numpy.uint8)
        return {"camera": shown, "state": numpy.full(200, self.drawn / 256, numpy.float32)}


model = PPO("MultiInputPolicy", DummyVecEnv([Robot] * 4), n_steps=256, batch_size=64, n_epochs=1)
model.learn(60_000)
