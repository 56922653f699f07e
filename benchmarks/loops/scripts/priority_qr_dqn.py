"""Quantile regression DQN with prioritized replay: a sum tree and structured transitions."""

import argparse
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import nn


class SumTree:
    """Priorities in a binary tree, data in one structured array."""

    def __init__(self, capacity: int, features: int) -> None:
        self.capacity = capacity
        self.tree = np.zeros(2 * capacity, np.float64)
        kind = np.dtype(
            [
                ("s", np.float32, (features,)),
                ("s2", np.float32, (features,)),
                ("a", np.int64),
                ("r", np.float32),
                ("d", np.float32),
            ]
        )
        self.data = np.zeros(capacity, kind)
        self.count = 0

    def add(self, *transition: Any) -> None:
        """Keep one, with the highest priority."""
        at = self.count % self.capacity
        self.data[at] = transition
        self.update(np.array([at]), np.array([1.0]))
        self.count += 1

    def update(self, rows: np.ndarray, priorities: np.ndarray) -> None:
        """Change priorities and the sums above them."""
        for row, priority in zip(rows, priorities, strict=True):
            node = int(row) + self.capacity
            change = priority - self.tree[node]
            while node:
                self.tree[node] += change
                node //= 2

    def sample(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows drawn by priority, and their transitions."""
        rows = np.empty(count, np.int64)
        for place, value in enumerate(np.random.random(count) * self.tree[1]):
            node = 1
            while node < self.capacity:
                node *= 2
                if value > self.tree[node]:
                    value -= self.tree[node]  # noqa: PLW2901
                    node += 1
            rows[place] = node - self.capacity
        return rows, self.data[rows]


class Shelf(gym.Env[Any, Any]):
    """A long shelf whose gaps are to be filled."""

    def __init__(self, features: int) -> None:
        self.observation_space = gym.spaces.Box(0, 1, (features,), np.float32)
        self.action_space = gym.spaces.Discrete(8)
        self.shelf = np.zeros(features, np.float32)
        self.at = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.shelf = (self.np_random.random(self.shelf.shape) < 0.5).astype(np.float32)
        self.at = 0
        return self.shelf.copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        place = (self.at + int(action)) % len(self.shelf)
        reward = 1.0 - float(self.shelf[place])
        self.shelf[place] = 1
        self.at += 8
        return self.shelf.copy(), reward, self.at >= len(self.shelf), False, {}


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", type=int, default=65_536)
    parser.add_argument("--features", type=int, default=3_000)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--quantiles", type=int, default=64)
    parser.add_argument("--frames", type=int, default=14_000)
    parser.add_argument("--start", type=int, default=8_000)
    parser.add_argument("--every", type=int, default=100)
    opt = parser.parse_args()
    env = Shelf(opt.features)
    online, target = (
        nn.Sequential(
            nn.Linear(opt.features, 256), nn.ReLU(), nn.Linear(256, 8 * opt.quantiles),
            nn.Unflatten(1, (8, opt.quantiles)),
        )
        for _ in range(2)
    )  # fmt: skip
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.Adam(online.parameters(), lr=5e-5)
    replay = SumTree(opt.memory, opt.features)
    taus = (torch.arange(opt.quantiles) + 0.5) / opt.quantiles
    state, _ = env.reset(seed=1)
    for frame in range(opt.frames):
        action = np.random.randint(8)
        if frame % 5 == 0:
            with torch.no_grad():
                action = int(online(torch.from_numpy(state)[None]).mean(2).argmax())
        following, reward, terminated, _, _ = env.step(action)
        replay.add(state, following, action, reward, terminated)
        state = env.reset()[0] if terminated else following
        if frame < opt.start or frame % opt.every:
            continue
        rows, got = replay.sample(opt.batch)
        s, s2 = torch.from_numpy(got["s"].copy()), torch.from_numpy(got["s2"].copy())
        each = torch.arange(opt.batch)
        with torch.no_grad():
            ahead = target(s2)
            best = ahead[each, ahead.mean(2).argmax(1)]
            going = 0.99 * (1 - torch.from_numpy(got["d"].copy()))[:, None]
            wanted = torch.from_numpy(got["r"].copy())[:, None] + going * best
        values = online(s)[each, torch.from_numpy(got["a"].copy())]
        error = wanted[:, None, :] - values[:, :, None]
        weight = (taus[None, :, None] - (error.detach() < 0).float()).abs()
        huber = nn.functional.huber_loss(error, torch.zeros_like(error), reduction="none")
        loss = (weight * huber).mean(2).sum(1)
        optimizer.zero_grad()
        loss.mean().backward()
        optimizer.step()
        replay.update(rows, (loss.detach() + 1e-3).numpy())
        if frame % 1000 == 0:
            target.load_state_dict(online.state_dict())
            print(f"frame {frame}: loss {loss.mean().item():.4f}")


if __name__ == "__main__":
    main()
