"""A rollout of pictures, flattened and gone through in minibatches."""

from frames import Frames
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack

env = VecFrameStack(DummyVecEnv([Frames] * 4), 2)
model = PPO("CnnPolicy", env, n_steps=128, batch_size=256, n_epochs=2, device="cpu")
model.learn(3 * 4 * 128)
