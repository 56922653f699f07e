"""Observations of several parts, and a normalizing wrapper around them."""

from frames import Sensors
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

env = VecNormalize(DummyVecEnv([Sensors] * 2), norm_obs_keys=["history", "pose"])
model = PPO("MultiInputPolicy", env, n_steps=256, batch_size=128, n_epochs=2, device="cpu")
model.learn(3 * 2 * 256)
