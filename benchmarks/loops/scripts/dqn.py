"""DQN in one file: a replay of numpy arrays, a target network, argparse."""

import argparse
import random

import gymnasium as gym
import numpy as np
import torch
from torch import nn, optim
from torch.nn import functional


class ReplayBuffer:
    """A ring of transitions; sampling copies them into tensors."""

    def __init__(self, size: int, inputs: int) -> None:
        self.observations = np.zeros((size, inputs), dtype=np.float32)
        self.next_observations = np.zeros((size, inputs), dtype=np.float32)
        self.actions = np.zeros(size, dtype=np.int64)
        self.rewards = np.zeros(size, dtype=np.float32)
        self.dones = np.zeros(size, dtype=np.float32)
        self.size, self.pos, self.full = size, 0, False

    def add(self, obs: np.ndarray, next_obs: np.ndarray, action: int, reward: float, done: bool) -> None:  # fmt: skip  # noqa: E501
        """Keep one transition."""
        at = self.pos
        self.observations[at], self.next_observations[at] = obs, next_obs
        self.actions[at], self.rewards[at], self.dones[at] = action, reward, done
        self.pos = (at + 1) % self.size
        self.full = self.full or self.pos == 0

    def sample(self, batch_size: int) -> list[torch.Tensor]:
        """Draw some."""
        inds = np.random.randint(0, self.size if self.full else self.pos, batch_size)
        arrays = (
            self.observations, self.next_observations, self.actions, self.rewards, self.dones
        )  # fmt: skip
        return [torch.as_tensor(array[inds]) for array in arrays]


class QNetwork(nn.Module):
    """The value of each action."""

    def __init__(self, inputs: int, actions: int, width: int) -> None:
        super().__init__()
        self.network = nn.Sequential(
            nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, actions),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        values: torch.Tensor = self.network(x)
        return values


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env-id", default="CartPole-v1")
    parser.add_argument("--total-timesteps", type=int, default=12_000)
    parser.add_argument("--buffer-size", type=int, default=10_000)
    parser.add_argument("--learning-starts", type=int, default=2_000)
    parser.add_argument("--train-frequency", type=int, default=10)
    parser.add_argument("--target-network-frequency", type=int, default=500)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--width", type=int, default=256)
    args = parser.parse_args()

    env = gym.make(args.env_id)
    inputs = int(np.prod(env.observation_space.shape or ()))
    assert isinstance(env.action_space, gym.spaces.Discrete)
    n_actions = int(env.action_space.n)
    q_network = QNetwork(inputs, n_actions, args.width)
    target_network = QNetwork(inputs, n_actions, args.width)
    target_network.load_state_dict(q_network.state_dict())
    optimizer = optim.Adam(q_network.parameters(), lr=2.5e-4)
    rb = ReplayBuffer(args.buffer_size, inputs)
    obs, _ = env.reset(seed=1)
    for global_step in range(args.total_timesteps):
        epsilon = max(0.05, 1.0 - global_step / (0.5 * args.total_timesteps))
        if random.random() < epsilon:
            action = random.randrange(n_actions)
        else:
            with torch.no_grad():
                action = int(q_network(torch.Tensor(obs).unsqueeze(0)).argmax())
        next_obs, reward, terminated, truncated, _ = env.step(action)
        rb.add(obs, next_obs, action, float(reward), terminated)
        obs = env.reset()[0] if terminated or truncated else next_obs
        if global_step > args.learning_starts and global_step % args.train_frequency == 0:
            b_obs, b_next, b_actions, b_rewards, b_dones = rb.sample(args.batch_size)
            with torch.no_grad():
                target_max = target_network(b_next).max(dim=1).values
                td_target = b_rewards + 0.99 * target_max * (1 - b_dones)
            old = q_network(b_obs).gather(1, b_actions.unsqueeze(1)).squeeze()
            loss = functional.mse_loss(td_target, old)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if global_step % args.target_network_frequency == 0:
                target_network.load_state_dict(q_network.state_dict())
                print(f"step {global_step}: loss {loss.item():.4f}")
    env.close()
