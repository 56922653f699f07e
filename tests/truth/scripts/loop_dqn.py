"""A DQN in one file: settings in a dataclass, a replay of frames that fills as it goes."""

import random
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import torch
from torch import nn


@dataclass
class Args:
    total_timesteps: int = 1200
    buffer_size: int = 3000
    learning_starts: int = 400
    batch_size: int = 32
    train_frequency: int = 4
    side: int = 84


args = Args()


class Frames(gym.Env):
    """Grey pictures."""

    observation_space = gym.spaces.Box(0, 255, (4, args.side, args.side), np.uint8)
    action_space = gym.spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.steps += 1
        return self.observation_space.sample(), 1.0, False, self.steps >= 200, {}


class Replay:
    def __init__(self, size, shape):
        self.observations = np.zeros((size, *shape), np.uint8)
        self.next_observations = np.zeros((size, *shape), np.uint8)
        self.actions = np.zeros((size, 1), np.int64)
        self.rewards = np.zeros(size, np.float32)
        self.size, self.at, self.full = size, 0, False

    def add(self, seen, then, action, reward):
        self.observations[self.at], self.next_observations[self.at] = seen, then
        self.actions[self.at], self.rewards[self.at] = action, reward
        self.at += 1
        self.full |= self.at == self.size
        self.at %= self.size

    def sample(self, count):
        rows = np.random.randint(0, self.size if self.full else self.at, count)
        return [
            torch.as_tensor(a[rows])
            for a in (self.observations, self.next_observations, self.actions, self.rewards)
        ]


class QNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.network = nn.Sequential(
            *(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU()),
            *(nn.Flatten(), nn.LazyLinear(512), nn.ReLU(), nn.Linear(512, 4)),
        )

    def forward(self, x):
        return self.network(x / 255.0)


def main():
    env = Frames()
    q_network, target_network = QNetwork(), QNetwork()
    seen, _ = env.reset(seed=1)
    q_network(torch.as_tensor(seen[None]))
    target_network(torch.as_tensor(seen[None]))
    target_network.load_state_dict(q_network.state_dict())
    optimizer = torch.optim.Adam(q_network.parameters(), lr=1e-4)
    rb = Replay(args.buffer_size, (4, args.side, args.side))
    for global_step in range(args.total_timesteps):
        if random.random() < 0.9:
            action = env.action_space.sample()
        else:
            with torch.no_grad():
                action = int(q_network(torch.as_tensor(seen[None])).argmax())
        then, reward, _, cut, _ = env.step(action)
        rb.add(seen, then, action, reward)
        seen = env.reset()[0] if cut else then
        if global_step > args.learning_starts and global_step % args.train_frequency == 0:
            observations, following, actions, rewards = rb.sample(args.batch_size)
            with torch.no_grad():
                target = rewards + 0.99 * target_network(following).max(dim=1).values
            value = q_network(observations).gather(1, actions).squeeze()
            loss = nn.functional.mse_loss(value, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
