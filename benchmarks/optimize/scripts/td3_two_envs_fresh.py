"""TD3 on two envs with observations of float64, buffer of 30,000."""

import numpy as np
from stable_baselines3 import TD3
from stable_baselines3.common.vec_env import DummyVecEnv
from worlds import Readings

env = DummyVecEnv([lambda: Readings(500, dtype=np.float64, discrete=False)] * 2)
model = TD3(
    "MlpPolicy",
    env,
    buffer_size=30_000,
    learning_starts=400,
    train_freq=8,
    gradient_steps=1,
    policy_kwargs={"net_arch": [64]},
)
model.learn(100_000)
