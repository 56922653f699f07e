"""PPO on four stacked frames of four envs, all in one process."""

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecFrameStack
from worlds import Pictures

env = VecFrameStack(make_vec_env(lambda: Pictures(side=84), n_envs=4, seed=1), n_stack=4)
model = PPO("CnnPolicy", env, n_steps=256, batch_size=128, n_epochs=1, seed=1, device="cpu")
model.learn(100_000)
