"""DDPG whose replay has the default size, for a run that is far shorter."""

import numpy as np
from stable_baselines3 import DDPG
from stable_baselines3.common.noise import NormalActionNoise
from worlds import Readings

env = Readings(150, discrete=False)
noise = NormalActionNoise(mean=np.zeros(2), sigma=0.1 * np.ones(2))
model = DDPG("MlpPolicy", env, action_noise=noise, learning_starts=300, train_freq=8, batch_size=64)
model.learn(total_timesteps=60_000)
