"""A trading env that computes its indicators when it is made; ten of them in one process."""

import gymnasium as gym
import numpy as np
from stable_baselines3 import A2C
from stable_baselines3.common.vec_env import DummyVecEnv

WINDOW = 24


def make_prices(days, seed):
    rng = np.random.default_rng(seed)
    return 100 * np.exp(np.cumsum(rng.normal(0, 0.01, (days, 20)), axis=0))


def indicators(prices):
    means = np.stack([np.roll(prices, lag, axis=0) for lag in range(1, 5)], axis=-1)
    return (prices[..., None] / means - 1).reshape(len(prices), -1)


class Market(gym.Env):
    def __init__(self, days=20_000):
        self.prices = make_prices(days, 7)
        self.features = indicators(self.prices)
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (80,), np.float64)
        self.action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.day = int(self.np_random.integers(WINDOW, len(self.prices) - 300))
        self.left = 250
        return self.features[self.day], {}

    def step(self, action):
        change = self.prices[self.day + 1].mean() - self.prices[self.day].mean()
        self.day += 1
        self.left -= 1
        return self.features[self.day], float((action - 1) * change), False, self.left == 0, {}


env = DummyVecEnv([Market for _ in range(10)])
model = A2C("MlpPolicy", env, n_steps=16)
model.learn(100_000)
