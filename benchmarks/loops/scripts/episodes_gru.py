"""Recurrent Q-learning on whole episodes of different lengths; settings in a class."""

import random
from typing import Any

import numpy as np
import torch
from torch import nn


class Config:
    """Settings of the training."""

    max_episodes = 60
    batch = 24
    length = 60
    sensors = 333
    hidden = 192
    episodes = 100


class Walk:
    """Noise that ends at some time."""

    def __init__(self) -> None:
        self.rng, self.left = np.random.default_rng(2), 0

    def reset(self) -> np.ndarray:
        """Begin anew."""
        self.left = int(self.rng.integers(70, 130))
        return self.rng.normal(size=Config.sensors).astype(np.float32)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, dict[str, Any]]:
        """One step."""
        self.left -= 1
        seen = self.rng.normal(size=Config.sensors).astype(np.float32)
        return seen, float(action == 1), self.left <= 0, {}


class Recurrent(nn.Module):
    """Values of four actions, by what was seen so far."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Linear(Config.sensors, Config.hidden)
        self.memory = nn.GRU(Config.hidden, Config.hidden, batch_first=True)
        self.head = nn.Linear(Config.hidden, 4)

    def forward(self, x: torch.Tensor, state: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
        seen, state = self.memory(torch.relu(self.encode(x)), state)
        return self.head(seen), state


def play(env: Walk, q: Recurrent) -> dict[str, np.ndarray]:
    """One episode."""
    episode: dict[str, list[Any]] = {"obs": [], "act": [], "rew": []}
    obs, state, done = env.reset(), None, False
    while not done:
        with torch.no_grad():
            values, state = q(torch.as_tensor(obs)[None, None], state)
        action = int(values.argmax()) if random.random() > 0.2 else random.randrange(4)
        episode["obs"].append(obs)
        episode["act"].append(action)
        obs, reward, done, _ = env.step(action)
        episode["rew"].append(np.float32(reward))
    return {key: np.array(value) for key, value in episode.items()}


def main() -> None:
    """Train."""
    env, q = Walk(), Recurrent()
    optimizer, replay = torch.optim.Adam(q.parameters(), 1e-3), list[Any]()
    for _ in range(Config.episodes):
        replay.append(play(env, q))
        if len(replay) > Config.max_episodes:
            replay.pop(0)
        if len(replay) < 20:
            continue
        for _ in range(2):
            some = random.choices(replay, k=Config.batch)
            obs, act, rew = (
                torch.stack([torch.as_tensor(one[key][: Config.length]) for one in some])
                for key in ("obs", "act", "rew")
            )
            values, _ = q(obs)
            y = rew[:, :-1] + 0.99 * values[:, 1:].max(-1).values.detach()
            taken = values[:, :-1].gather(2, act[:, :-1, None]).squeeze(2)
            loss = (taken - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
