"""Two critics, their targets, an actor, and a replay of which little is filled."""

import gymnasium
from stable_baselines3 import SAC

env = gymnasium.make("Pendulum-v1")
SAC("MlpPolicy", env, batch_size=1024, learning_starts=100, device="cpu").learn(160)
