"""PPO on long vectors: the rollout is flattened, and nobody gave a seed."""

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from worlds import Readings

env = make_vec_env(lambda: Readings(4000), n_envs=8)
model = PPO("MlpPolicy", env, n_steps=256, batch_size=128, n_epochs=1, device="cpu")
model.learn(200_000)
