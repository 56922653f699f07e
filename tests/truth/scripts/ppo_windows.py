"""A rollout of stacked pictures, each stored once by a drop-in."""

from frames import Frames
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack

from memfit.dropins import WindowRolloutBuffer

env = VecFrameStack(DummyVecEnv([Frames] * 4), 4)
model = PPO(
    "CnnPolicy",
    env,
    n_steps=512,
    batch_size=64,
    n_epochs=1,
    device="cpu",
    rollout_buffer_class=WindowRolloutBuffer,
)
model.learn(2 * 4 * 512)
