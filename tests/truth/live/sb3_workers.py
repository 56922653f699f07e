"""PPO on CartPole with two subprocess workers, after one update."""

import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import SubprocVecEnv
from wait import ready

if __name__ == "__main__":
    envs = SubprocVecEnv([lambda: gym.make("CartPole-v1") for _ in range(2)])
    model = PPO("MlpPolicy", envs, n_steps=64, batch_size=64, device="cpu")
    model.learn(128)
    ready()
    envs.close()
