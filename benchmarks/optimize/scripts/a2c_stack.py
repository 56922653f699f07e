"""A2C on stacked frames, with rollouts that are longer than usual."""

from stable_baselines3 import A2C
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecFrameStack
from worlds import Pictures

env = VecFrameStack(make_vec_env(Pictures, n_envs=8), n_stack=6)
model = A2C("CnnPolicy", env, n_steps=64, seed=3, device="cpu")
model.learn(100_000)
