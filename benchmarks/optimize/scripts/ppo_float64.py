"""PPO on float64 observations."""

import numpy
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from worlds import Readings

env = make_vec_env(lambda: Readings(2500, dtype=numpy.float64), n_envs=4)
model = PPO("MlpPolicy", env, n_steps=512, batch_size=64, n_epochs=1, seed=2, device="cpu")
model.learn(100_000)
