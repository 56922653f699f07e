"""PPO of stable-baselines3 with an environment in each worker process."""

import argparse

from my_game import make_env
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import SubprocVecEnv

from memfit.dropins import LightVecEnv

parser = argparse.ArgumentParser()
parser.add_argument("--envs", type=int, default=4)
parser.add_argument("--light", action="store_true", help="with the workers of memfit.dropins")
args = parser.parse_args()

if __name__ == "__main__":
    workers = LightVecEnv if args.light else SubprocVecEnv
    env = make_vec_env(make_env, n_envs=args.envs, vec_env_cls=workers)
    model = PPO("MlpPolicy", env, n_steps=64, batch_size=64, n_epochs=2, device="cpu")
    model.learn(512)
    env.close()
