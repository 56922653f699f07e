"""A training in classes: a config, a buffer, an agent and a Trainer whose fit() is the loop."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import torch
from torch import nn


@dataclass(kw_only=True, frozen=True)
class TrainerConfig:
    """What the trainer is told."""

    env: str = "CartPole-v1"
    replay_capacity: int = 400_000
    history: int = 64
    batch_size: int = 1024
    hidden_size: int = 512
    warmup: int = 2_000
    epochs: int = 6
    steps_per_epoch: int = 1_000
    updates_per_epoch: int = 12


class ReplayMemory:
    """Histories of observations, filled at once so that they are resident."""

    def __init__(self, capacity: int, shape: tuple[int, ...]) -> None:
        self.states = torch.full((capacity, *shape), 0.5, dtype=torch.float16)
        self.actions = torch.ones(capacity, dtype=torch.int64)
        self.rewards = torch.ones(capacity)
        self.position = 0

    def push(self, state: np.ndarray, action: int, reward: float) -> None:
        """Keep one."""
        self.states[self.position] = torch.from_numpy(state)
        self.actions[self.position], self.rewards[self.position] = action, reward
        self.position = (self.position + 1) % len(self.states)

    def sample(self, count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Draw transitions."""
        rows = torch.randint(0, max(2, self.position - 1), (count,))
        states, following = self.states[rows].float(), self.states[rows + 1].float()
        return states, self.actions[rows], self.rewards[rows], following


class DQNAgent:
    """Two networks and their optimizer."""

    def __init__(self, config: TrainerConfig, inputs: int, actions: int) -> None:
        def build() -> nn.Sequential:
            return nn.Sequential(
                nn.Flatten(), nn.Linear(inputs * config.history, config.hidden_size), nn.ReLU(),
                nn.Linear(config.hidden_size, actions),
            )  # fmt: skip

        self.online, self.target = build(), build()
        self.optimizer = torch.optim.Adam(self.online.parameters())

    def learn(self, batch: tuple[torch.Tensor, ...]) -> float:
        """One update."""
        states, actions, rewards, following = batch
        with torch.no_grad():
            wanted = rewards + 0.99 * self.target(following).max(1).values
        values = self.online(states).gather(1, actions[:, None]).squeeze(1)
        loss = nn.functional.huber_loss(values, wanted)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return float(loss)


class Trainer:
    """Steps the env and lets the agent learn."""

    def __init__(self, config: TrainerConfig) -> None:
        self.config = config
        self.env = gym.make(config.env)
        inputs = int(np.prod(self.env.observation_space.shape or ()))
        self.agent = DQNAgent(config, inputs, 2)
        self.memory = ReplayMemory(config.replay_capacity, (config.history, inputs))
        self.window = np.zeros((config.history, inputs), np.float16)
        self._begin()

    def _begin(self) -> None:
        self.window[:] = self.env.reset()[0]

    def play(self, steps: int) -> None:
        """Step the env."""
        for _ in range(steps):
            with torch.no_grad():
                values = self.agent.online(torch.from_numpy(self.window).float()[None])
            action = int(values.argmax()) if np.random.random() > 0.2 else np.random.randint(2)
            seen, reward, terminated, truncated, _ = self.env.step(action)
            self.memory.push(self.window, action, float(reward))
            self.window = np.roll(self.window, -1, axis=0)
            self.window[-1] = seen
            if terminated or truncated:
                self._begin()

    def fit(self) -> None:
        """Train to the end."""
        self.play(self.config.warmup)
        for epoch in range(self.config.epochs):
            self.play(self.config.steps_per_epoch)
            losses = [
                self.agent.learn(self.memory.sample(self.config.batch_size))
                for _ in range(self.config.updates_per_epoch)
            ]
            self.agent.target.load_state_dict(self.agent.online.state_dict())
            print(f"epoch {epoch}: loss {np.mean(losses):.4f}")


def main() -> None:
    """Read the command line and fit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replay-capacity", type=int, default=TrainerConfig.replay_capacity)
    parser.add_argument("--batch-size", type=int, default=TrainerConfig.batch_size)
    parser.add_argument("--history", type=int, default=TrainerConfig.history)
    args = parser.parse_args()
    Trainer(TrainerConfig(**vars(args))).fit()


if __name__ == "__main__":
    main()
