"""PPO of stable-baselines3 on CartPole: a training as most people begin with."""

import argparse

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

parser = argparse.ArgumentParser()
parser.add_argument("--env", default="CartPole-v1")
parser.add_argument("--envs", type=int, default=4)
parser.add_argument("--n-steps", type=int, default=512)
parser.add_argument("--steps", type=int, default=4_096)
args = parser.parse_args()

env = make_vec_env(args.env, n_envs=args.envs)
model = PPO("MlpPolicy", env, n_steps=args.n_steps, batch_size=64, n_epochs=4, device="cpu")
model.learn(args.steps)
