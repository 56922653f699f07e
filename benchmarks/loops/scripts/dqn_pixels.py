"""DQN on frames: a replay of 150,000 that fills lazily, learning begins after 80,000 steps."""

import argparse
import random
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import nn, optim
from torch.nn import functional


class Corridor(gym.Env[Any, Any]):
    """A bright column moves through a noisy picture."""

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(0, 255, (1, 84, 84), np.uint8)
        self.action_space = gym.spaces.Discrete(4)
        self.noise = np.random.default_rng(0).integers(0, 64, (1, 84, 84), dtype=np.uint8)
        self.at = self.steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.at, self.steps = 42, 0
        return self._picture(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.at = (self.at + int(action) - 1) % 84
        self.steps += 1
        return self._picture(), float(self.at == 0), self.at == 0, self.steps >= 500, {}

    def _picture(self) -> Any:
        picture = self.noise.copy()
        picture[0, :, self.at] = 255
        return picture


class QNetwork(nn.Module):
    """Three convolutions and a wide layer."""

    def __init__(self, actions: int) -> None:
        super().__init__()
        self.network = nn.Sequential(
            nn.Conv2d(1, 32, 8, stride=4), nn.ReLU(),
            nn.Conv2d(32, 64, 4, stride=2), nn.ReLU(),
            nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(),
            nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, actions),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        values: torch.Tensor = self.network(x / 255.0)
        return values


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--total-timesteps", type=int, default=88_000)
    parser.add_argument("--buffer-size", type=int, default=150_000)
    parser.add_argument("--learning-starts", type=int, default=80_000)
    parser.add_argument("--train-frequency", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=32)
    return parser.parse_args()


if __name__ == "__main__":
    args = parse_args()
    env = Corridor()
    q_network, target_network = QNetwork(4), QNetwork(4)
    target_network.load_state_dict(q_network.state_dict())
    optimizer = optim.Adam(q_network.parameters(), lr=1e-4)
    observations = np.zeros((args.buffer_size, 1, 84, 84), np.uint8)
    next_observations = np.zeros((args.buffer_size, 1, 84, 84), np.uint8)
    actions = np.zeros((args.buffer_size, 1), np.int64)
    rewards = np.zeros(args.buffer_size, np.float32)
    dones = np.zeros(args.buffer_size, np.float32)
    obs, _ = env.reset(seed=1)
    for global_step in range(args.total_timesteps):
        epsilon = 1.0 if global_step < args.learning_starts else 0.9
        if random.random() < epsilon:
            action = random.randrange(4)
        else:
            with torch.no_grad():
                action = int(q_network(torch.as_tensor(obs[None])).argmax())
        next_obs, reward, terminated, truncated, _ = env.step(action)
        place = global_step % args.buffer_size
        observations[place], next_observations[place] = obs, next_obs
        actions[place], rewards[place], dones[place] = action, reward, terminated
        obs = env.reset()[0] if terminated or truncated else next_obs
        if global_step < args.learning_starts or global_step % args.train_frequency:
            continue
        inds = np.random.randint(0, min(global_step + 1, args.buffer_size), args.batch_size)
        with torch.no_grad():
            best = target_network(torch.as_tensor(next_observations[inds])).max(dim=1).values
            target = torch.as_tensor(rewards[inds])
            target = target + 0.99 * best * (1 - torch.as_tensor(dones[inds]))
        values = q_network(torch.as_tensor(observations[inds]))
        chosen = values.gather(1, torch.as_tensor(actions[inds])).squeeze(1)
        loss = functional.smooth_l1_loss(chosen, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if global_step % 1000 == 0:
            target_network.load_state_dict(q_network.state_dict())
            print(f"step {global_step}: loss {loss.item():.4f}")
