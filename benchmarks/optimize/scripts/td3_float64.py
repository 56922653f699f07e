"""TD3 on float64 observations, which its networks see as float32."""

import numpy
from stable_baselines3 import TD3
from worlds import Readings

env = Readings(1500, dtype=numpy.float64, discrete=False)
model = TD3("MlpPolicy", env, buffer_size=10_000, learning_starts=500, seed=5, device="cpu")
model.learn(30_000)
