"""Tianshou 2: C51 on stacked frames of envs in processes, through shared memory, by priorities."""

import argparse
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from tianshou.algorithm import C51
from tianshou.algorithm.modelfree.c51 import C51Policy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, PrioritizedVectorReplayBuffer
from tianshou.env import ShmemVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from torch import nn


class Stars(gym.Env[Any, Any]):
    """A sky of moving dots: the last four pictures."""

    def __init__(self, side: int) -> None:
        self.observation_space = gym.spaces.Box(0, 255, (4, side, side), np.uint8)
        self.action_space = gym.spaces.Discrete(4)
        self.sky = np.zeros((4, side, side), np.uint8)
        self.steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.sky = self.np_random.integers(0, 256, self.sky.shape, np.uint8)
        self.steps = 0
        return self.sky, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        newest = np.roll(self.sky[-1], int(action) - 1, axis=0)
        self.sky = np.concatenate([self.sky[1:], newest[None]])
        self.steps += 1
        return self.sky, float(newest[0].mean()) / 255, self.steps >= 120, False, {}


class Eyes(nn.Module):
    """Distributions of the return of each action, from pictures."""

    def __init__(self, side: int, num_atoms: int) -> None:
        super().__init__()
        self.num_atoms = num_atoms
        self.layers = nn.Sequential(
            nn.Conv2d(4, 16, 8, 4), nn.ReLU(), nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.Flatten()
        )
        with torch.no_grad():
            features = self.layers(torch.zeros(1, 4, side, side)).shape[1]
        self.head = nn.Linear(features, 4 * num_atoms)

    def forward(self, obs: Any, state: Any = None, info: Any = None) -> tuple[Any, Any]:
        pictures = torch.as_tensor(np.asarray(obs), dtype=torch.float32) / 255
        values = self.head(self.layers(pictures)).view(-1, 4, self.num_atoms)
        return values.softmax(-1), state


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-envs", type=int, default=3)
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--buffer-size", type=int, default=12_000)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--num-atoms", type=int, default=31)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    envs = ShmemVectorEnv([lambda: Stars(args.side) for _ in range(args.num_envs)])
    policy = C51Policy(
        model=Eyes(args.side, args.num_atoms),
        action_space=Stars(args.side).action_space,
        num_atoms=args.num_atoms,
        v_min=0.0,
        v_max=60.0,
        eps_training=0.2,
    )
    algorithm = C51(policy=policy, optim=AdamOptimizerFactory(lr=1e-4), target_update_freq=50)
    buffer = PrioritizedVectorReplayBuffer(
        args.buffer_size,
        buffer_num=args.num_envs,
        alpha=0.6,
        beta=0.4,
        ignore_obs_next=True,
    )
    collector = Collector(algorithm, envs, buffer, exploration_noise=True)
    collector.reset()
    collector.collect(n_step=600)
    algorithm.run_training(
        OffPolicyTrainerParams(
            training_collector=collector,
            max_epochs=args.epochs,
            epoch_num_steps=300,
            collection_step_num_env_steps=30,
            update_step_num_gradient_steps_per_sample=0.1,
            batch_size=args.batch_size,
            show_progress=False,
        )
    )
    envs.close()


if __name__ == "__main__":
    main()
