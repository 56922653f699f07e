"""QR-DQN on three stacked frames of two envs."""

from sb3_contrib import QRDQN
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack
from worlds import Pictures

venv = VecFrameStack(DummyVecEnv([lambda: Pictures(side=64)] * 2), 3)
agent = QRDQN("CnnPolicy", venv, buffer_size=16_000, learning_starts=300, batch_size=16)
agent.learn(total_timesteps=50_000)
