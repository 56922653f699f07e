"""A first steps tutorial: PPO on CartPole, four envs, all as it is by default."""

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

vec_env = make_vec_env("CartPole-v1", n_envs=4)

model = PPO("MlpPolicy", vec_env, verbose=0)
model.learn(total_timesteps=25_000)
