"""Categorical DQN with 51 atoms: dataclass settings by argparse, wide layers, large batches."""

import argparse
from collections import deque
from dataclasses import dataclass, fields

import gymnasium as gym
import numpy as np
import torch
from torch import nn, optim


@dataclass(frozen=True)
class Settings:
    """What can be changed from the command line."""

    env_id: str = "Acrobot-v1"
    total_timesteps: int = 6_000
    buffer_size: int = 5_000
    learning_starts: int = 1_000
    train_frequency: int = 50
    batch_size: int = 1_024
    n_atoms: int = 51
    hidden: int = 512
    v_min: float = -100.0
    v_max: float = 100.0


class Distribution(nn.Module):
    """Logits of every atom of every action."""

    support: torch.Tensor

    def __init__(self, inputs: int, actions: int, cfg: Settings) -> None:
        super().__init__()
        self.actions, self.atoms = actions, cfg.n_atoms
        self.register_buffer("support", torch.linspace(cfg.v_min, cfg.v_max, cfg.n_atoms))
        self.layers = nn.Sequential(
            nn.Linear(inputs, cfg.hidden), nn.ReLU(),
            nn.Linear(cfg.hidden, cfg.hidden), nn.ReLU(),
            nn.Linear(cfg.hidden, actions * cfg.n_atoms),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.layers(x)
        return logits.view(-1, self.actions, self.atoms).softmax(dim=2)

    def best(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The action of the highest mean, and its atoms."""
        atoms = self(x)
        action = (atoms * self.support).sum(2).argmax(1)
        return action, atoms[torch.arange(len(x)), action]


def train(cfg: Settings) -> None:
    """Train to the end."""
    env = gym.make(cfg.env_id)
    assert isinstance(env.action_space, gym.spaces.Discrete)
    n_actions = int(env.action_space.n)
    inputs = int(np.prod(env.observation_space.shape or ()))
    network, target = Distribution(inputs, n_actions, cfg), Distribution(inputs, n_actions, cfg)
    target.load_state_dict(network.state_dict())
    optimizer = optim.Adam(network.parameters(), lr=2.5e-4, eps=0.01 / cfg.batch_size)
    memory: deque[tuple[np.ndarray, int, float, np.ndarray, bool]]
    memory = deque(maxlen=cfg.buffer_size)
    rng = np.random.default_rng(1)
    obs, _ = env.reset(seed=1)
    for step in range(1, cfg.total_timesteps + 1):
        if rng.random() < max(0.05, 1 - step / 3000):
            action = int(rng.integers(n_actions))
        else:
            with torch.no_grad():
                action = int(network.best(torch.as_tensor(obs)[None])[0])
        following, reward, terminated, truncated, _ = env.step(action)
        memory.append((obs, action, float(reward), following, terminated))
        obs = env.reset()[0] if terminated or truncated else following
        if step <= cfg.learning_starts or step % cfg.train_frequency:
            continue
        chosen = [memory[int(i)] for i in rng.integers(len(memory), size=cfg.batch_size)]
        states, acts, rewards, nexts, ends = (np.array(part) for part in zip(*chosen, strict=True))
        with torch.no_grad():
            _, next_atoms = target.best(torch.as_tensor(nexts))
            going = 0.99 * (1 - torch.as_tensor(ends, dtype=torch.float32))[:, None]
            moved = torch.as_tensor(rewards, dtype=torch.float32)[:, None]
            moved = (moved + going * target.support).clamp(cfg.v_min, cfg.v_max)
            place = (moved - cfg.v_min) / (target.support[1] - target.support[0])
            low, high = place.floor().long(), place.ceil().long()
            projected = torch.zeros_like(next_atoms)
            projected.scatter_add_(1, low, next_atoms * (high + (low == high) - place))
            projected.scatter_add_(1, high, next_atoms * (place - low))
        predicted = network(torch.as_tensor(states))[torch.arange(cfg.batch_size), acts]
        loss = -(projected * predicted.clamp(1e-5, 1 - 1e-5).log()).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 500 == 0:
            target.load_state_dict(network.state_dict())
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for one in fields(Settings):
        option = f"--{one.name.replace('_', '-')}"
        parser.add_argument(option, type=type(one.default), default=one.default)
    train(Settings(**vars(parser.parse_args())))
