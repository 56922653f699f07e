"""A seeded PPO on CartPole that prints how long it learned and the processor time that took."""

import sys
import time

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

steps, n_envs = int(sys.argv[1]), int(sys.argv[2])
env = make_vec_env("CartPole-v1", n_envs=n_envs, seed=0)
model = PPO("MlpPolicy", env, n_steps=2048 // n_envs, seed=0, device="cpu")
started, cpu = time.perf_counter(), time.process_time()
model.learn(steps)
print(time.perf_counter() - started, time.process_time() - cpu)
