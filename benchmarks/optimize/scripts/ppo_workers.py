"""PPO with a process for each of two envs, which each import torch."""

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import SubprocVecEnv
from worlds import Pictures

if __name__ == "__main__":
    env = make_vec_env(Pictures, n_envs=2, seed=7, vec_env_cls=SubprocVecEnv)
    model = PPO("CnnPolicy", env, n_steps=128, batch_size=64, n_epochs=1, seed=7, device="cpu")
    model.learn(50_000)
