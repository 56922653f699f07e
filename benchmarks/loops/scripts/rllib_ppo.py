"""RLlib: PPO on wide observations, with env runners and perhaps learners in other processes."""

import argparse

import gymnasium as gym
import numpy as np
from ray.rllib.algorithms.ppo import PPOConfig


class Antennas(gym.Env):
    """Turn an array of antennas to where the signal is strongest."""

    def __init__(self, config: dict) -> None:
        self.antennas = config["antennas"]
        self.observation_space = gym.spaces.Box(-1, 1, (self.antennas,), np.float32)
        self.action_space = gym.spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple:
        super().reset(seed=seed)
        self.left = 100
        return self._heard(), {}

    def step(self, action: int) -> tuple:
        self.left -= 1
        return self._heard(), float(self.signal[action]), self.left == 0, False, {}

    def _heard(self) -> np.ndarray:
        self.signal = self.np_random.uniform(-1, 1, self.antennas).astype(np.float32)
        return self.signal


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--antennas", type=int, default=2500)
parser.add_argument("--num-env-runners", type=int, default=2)
parser.add_argument("--num-learners", type=int, default=0)
parser.add_argument("--train-batch-size", type=int, default=2000)
parser.add_argument("--minibatch-size", type=int, default=250)
parser.add_argument("--iterations", type=int, default=4)

if __name__ == "__main__":
    args = parser.parse_args()
    config = (
        PPOConfig()
        .environment(Antennas, env_config={"antennas": args.antennas})
        .env_runners(num_env_runners=args.num_env_runners)
        .learners(num_learners=args.num_learners)
        .training(
            train_batch_size_per_learner=args.train_batch_size,
            minibatch_size=args.minibatch_size,
            num_epochs=2,
        )
    )
    algorithm = config.build_algo()
    for _ in range(args.iterations):
        algorithm.train()
    algorithm.stop()
