"""DDPG whose env gives float64, as numpy does unless told otherwise."""

from stable_baselines3 import DDPG
from stable_baselines3.common.monitor import Monitor
from worlds import Readings

env = Monitor(Readings(2000, dtype=float, discrete=False))
model = DDPG("MlpPolicy", env, buffer_size=8_000, batch_size=64, device="cpu")
model.learn(20_000)
