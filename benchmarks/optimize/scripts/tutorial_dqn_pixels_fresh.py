"""A tutorial on pixels: DQN with four stacked frames, a small replay that still fills."""

from stable_baselines3 import DQN
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecFrameStack
from worlds import Pictures

env = make_vec_env(lambda: Pictures(side=84), n_envs=1)
env = VecFrameStack(env, n_stack=4)
model = DQN(
    "CnnPolicy",
    env,
    buffer_size=4_000,
    learning_starts=200,
    train_freq=16,
    batch_size=8,
    seed=3,
)
model.learn(20_000)
