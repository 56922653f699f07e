"""DQN with a replay buffer of a million rows, hardly filled."""

from stable_baselines3 import DQN
from wait import ready

model = DQN("MlpPolicy", "CartPole-v1", learning_starts=100, device="cpu")
model.learn(500)
ready()
