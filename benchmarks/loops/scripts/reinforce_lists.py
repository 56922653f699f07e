"""REINFORCE that keeps whole episodes, graphs included, in Python lists until the update."""

import argparse
from collections import deque

import gymnasium as gym
import torch
from torch import nn
from torch.distributions import Categorical

parser = argparse.ArgumentParser()
parser.add_argument("--episodes", type=int, default=64)
parser.add_argument("--episodes-per-update", type=int, default=16)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--hidden", type=int, default=1024)
parser.add_argument("--gamma", type=float, default=0.99)


class Policy(nn.Module):
    """A policy of one wide hidden layer."""

    def __init__(self, inputs: int, actions: int, hidden: int) -> None:
        super().__init__()
        self.affine1 = nn.Linear(inputs, hidden)
        self.dropout = nn.Dropout(p=0.2)
        self.affine2 = nn.Linear(hidden, actions)
        self.saved_log_probs: list[list[torch.Tensor]] = []
        self.rewards: list[list[float]] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.affine2(self.dropout(self.affine1(x)).relu())
        return scores.softmax(dim=1)


def finish(policy: Policy, optimizer: torch.optim.Optimizer, gamma: float) -> float:
    """One update from all episodes since the last one."""
    losses = []
    for log_probs, rewards in zip(policy.saved_log_probs, policy.rewards, strict=True):
        future, returns = 0.0, deque[float]()
        for reward in reversed(rewards):
            future = reward + gamma * future
            returns.appendleft(future)
        scaled = torch.tensor(returns)
        scaled = (scaled - scaled.mean()) / (scaled.std() + 1e-6)
        losses += [-log_prob * r for log_prob, r in zip(log_probs, scaled, strict=True)]
    optimizer.zero_grad()
    loss = torch.cat(losses).sum()
    loss.backward()
    optimizer.step()
    policy.saved_log_probs.clear()
    policy.rewards.clear()
    return float(loss)


def main() -> None:
    """Train."""
    args = parser.parse_args()
    env = gym.make("Acrobot-v1", max_episode_steps=args.steps)
    policy = Policy(6, 3, args.hidden)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    for episode in range(1, args.episodes + 1):
        state, _ = env.reset(seed=episode)
        log_probs: list[torch.Tensor] = []
        rewards: list[float] = []
        done = False
        while not done:
            chances = Categorical(policy(torch.from_numpy(state).unsqueeze(0)))
            action = chances.sample()
            log_probs.append(chances.log_prob(action))
            state, reward, terminated, truncated, _ = env.step(int(action))
            rewards.append(float(reward))
            done = terminated or truncated
        policy.saved_log_probs.append(log_probs)
        policy.rewards.append(rewards)
        if episode % args.episodes_per_update == 0:
            print(f"episode {episode}: loss {finish(policy, optimizer, args.gamma):.2f}")


if __name__ == "__main__":
    main()
