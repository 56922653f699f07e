"""Many small environments in one process, and the whole rollout in one update."""

from stable_baselines3 import A2C
from stable_baselines3.common.env_util import make_vec_env

env = make_vec_env("CartPole-v1", n_envs=6)
A2C("MlpPolicy", env, n_steps=64, device="cpu").learn(6 * 64 * 6)
