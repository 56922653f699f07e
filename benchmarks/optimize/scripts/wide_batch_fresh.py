"""PPO with a batch as large as the rollout and a wide network."""

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from worlds import Readings

policy_kwargs = {"net_arch": [2048, 1024], "activation_fn": torch.nn.ReLU}
env = make_vec_env(lambda: Readings(200, discrete=False), n_envs=8)
model = PPO("MlpPolicy", env, n_steps=512, batch_size=4096, n_epochs=1, policy_kwargs=policy_kwargs)
model.learn(40_000)
