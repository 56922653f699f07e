"""A replay that no small machine could hold: 2 x 2,000,000 stacks of four frames, 113 GB."""

from frames import Frames
from stable_baselines3 import DQN

env = Frames(side=84, channels=4, channels_first=True)
DQN("CnnPolicy", env, buffer_size=2_000_000, device="cpu").learn(10_000_000)
