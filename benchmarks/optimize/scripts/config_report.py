"""PPO from a dictionary of settings, with normalised observations and arguments of its own."""

import argparse

import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize
from worlds import Readings

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=100_000)
parser.add_argument("--envs", type=int, default=6)
options = parser.parse_args()

config = {"n_steps": 256, "batch_size": 1536, "n_epochs": 1, "policy_kwargs": {"net_arch": [2048]}}
env = VecNormalize(make_vec_env(lambda: Readings(1500, dtype=np.float64), n_envs=options.envs))
model = PPO("MlpPolicy", env, **config)
model.learn(options.steps)
