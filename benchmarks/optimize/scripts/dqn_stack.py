"""DQN on four stacked frames, each stored eight times by the replay buffer."""

from stable_baselines3 import DQN
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecFrameStack
from worlds import Pictures

env = VecFrameStack(make_vec_env(lambda: Pictures(side=84), n_envs=1), n_stack=4)
model = DQN("CnnPolicy", env, buffer_size=10_000, learning_starts=1_000, device="cpu", seed=0)
model.learn(40_000)
