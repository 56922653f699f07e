"""A small training, and then a video of one episode, held as pictures until it is written."""

import sys
from types import ModuleType
from typing import Any

import gymnasium
import numpy
from gymnasium.wrappers import RecordVideo, TimeLimit
from stable_baselines3 import PPO

SIDE, STEPS = 256, int(sys.argv[1]) if len(sys.argv) > 1 else 2000


class Filmed(gymnasium.Env):
    """A point that can be looked at."""

    render_mode = "rgb_array"
    observation_space = gymnasium.spaces.Box(-1, 1, (4,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)
    steps = 0

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return numpy.zeros(4, numpy.float32), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return numpy.zeros(4, numpy.float32), 0.0, False, False, {}

    def render(self) -> Any:
        return numpy.full((SIDE, SIDE, 3), self.steps % 251, numpy.uint8)


class Clip:
    """Stands for the encoder of a video, which is no part of this."""

    def __init__(self, frames: Any, fps: int) -> None:
        self.frames = frames

    def write_videofile(self, path: str, **options: Any) -> None:
        assert len(self.frames) == STEPS + 1


encoder = "moviepy.video.io.ImageSequenceClip"
for end in (7, 13, 16, None):
    sys.modules[encoder[:end]] = ModuleType(encoder[:end])
vars(sys.modules[encoder])["ImageSequenceClip"] = Clip

model = PPO("MlpPolicy", TimeLimit(Filmed(), 100), n_steps=128, batch_size=64, device="cpu")
model.learn(256)

env: Any = RecordVideo(TimeLimit(Filmed(), STEPS), "videos", episode_trigger=lambda episode: True)
observation, _ = env.reset()
done = False
while not done:
    action, _ = model.predict(observation)
    observation, _, terminated, truncated, _ = env.step(action)
    done = terminated or truncated
env.close()
