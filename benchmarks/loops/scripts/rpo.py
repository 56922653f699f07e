"""Robust policy optimization: PPO whose mean is disturbed in the update; settings by tyro."""

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import torch
import tyro
from torch import nn, optim
from torch.distributions import Normal


@dataclass
class Args:
    """Settings of the training."""

    seed: int = 1
    num_envs: int = 64
    num_steps: int = 64
    num_minibatches: int = 4
    update_epochs: int = 2
    num_iterations: int = 6
    sensors: int = 2048
    hidden: int = 128
    rpo_alpha: float = 0.5
    batch_size: int = 0
    """worked out when it runs"""


class Sensors(gym.Env[Any, Any]):
    """Many noisy sensors of one point that is to be kept at zero."""

    def __init__(self, sensors: int) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (sensors,), np.float32)
        self.action_space = gym.spaces.Box(-1, 1, (2,), np.float32)
        self.gains = np.linspace(-1, 1, 2 * sensors, dtype=np.float32).reshape(2, sensors)
        self.point = np.zeros(2, np.float32)
        self.steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.point = self.np_random.normal(size=2).astype(np.float32)
        self.steps = 0
        return self.point @ self.gains, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.point = self.point + 0.1 * np.asarray(action, np.float32)
        self.steps += 1
        far = float(np.square(self.point).sum())
        return self.point @ self.gains, -far, False, self.steps >= 200, {}


class Agent(nn.Module):
    """A policy that is disturbed when it judges, and a value."""

    def __init__(self, args: Args) -> None:
        super().__init__()
        self.alpha = args.rpo_alpha
        self.critic = nn.Sequential(
            nn.Linear(args.sensors, args.hidden), nn.Tanh(), nn.Linear(args.hidden, 1)
        )
        self.mean = nn.Sequential(
            nn.Linear(args.sensors, args.hidden), nn.Tanh(), nn.Linear(args.hidden, 2)
        )
        self.logstd = nn.Parameter(torch.zeros(1, 2))

    def act(self, x: torch.Tensor, action: torch.Tensor | None = None) -> tuple[torch.Tensor, ...]:
        """Sample, or judge under a disturbed mean."""
        mean = self.mean(x)
        if action is not None:
            mean = mean + torch.empty_like(mean).uniform_(-self.alpha, self.alpha)
        policy = Normal(mean, self.logstd.expand_as(mean).exp())
        if action is None:
            action = policy.sample()
        return action, policy.log_prob(action).sum(1), self.critic(x).flatten()


if __name__ == "__main__":
    args = tyro.cli(Args)
    args.batch_size = args.num_envs * args.num_steps
    minibatch_size = args.batch_size // args.num_minibatches
    torch.manual_seed(args.seed)
    envs = gym.vector.SyncVectorEnv([lambda: Sensors(args.sensors) for _ in range(args.num_envs)])
    agent = Agent(args)
    optimizer = optim.Adam(agent.parameters(), lr=3e-4)
    obs = torch.zeros((args.num_steps, args.num_envs, args.sensors))
    actions = torch.zeros((args.num_steps, args.num_envs, 2))
    logprobs = torch.zeros((args.num_steps, args.num_envs))
    rewards = torch.zeros((args.num_steps, args.num_envs))
    values = torch.zeros((args.num_steps, args.num_envs))
    next_obs = torch.Tensor(envs.reset(seed=args.seed)[0])
    for iteration in range(args.num_iterations):
        for step in range(args.num_steps):
            obs[step] = next_obs
            with torch.no_grad():
                actions[step], logprobs[step], values[step] = agent.act(next_obs)
            seen, reward, terminated, truncated, infos = envs.step(actions[step].numpy())
            next_obs, rewards[step] = torch.Tensor(seen), torch.tensor(reward)
        returns, future = torch.zeros_like(rewards), values[-1]
        for t in reversed(range(args.num_steps)):
            future = rewards[t] + 0.99 * future
            returns[t] = future
        b_obs, b_actions = obs.reshape(-1, args.sensors), actions.reshape(-1, 2)
        b_logprobs, b_returns = logprobs.reshape(-1), returns.reshape(-1)
        b_advantages = (returns - values).reshape(-1)
        for _ in range(args.update_epochs):
            for mb in np.random.permutation(args.batch_size).reshape(-1, minibatch_size):
                mb_actions, newlogprob, newvalue = agent.act(b_obs[mb], b_actions[mb])
                ratio = (newlogprob - b_logprobs[mb]).exp()
                advantage = b_advantages[mb]
                pg_loss = -torch.min(advantage * ratio, advantage * ratio.clamp(0.8, 1.2)).mean()
                loss = pg_loss + 0.5 * (newvalue - b_returns[mb]).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        print(f"iteration {iteration}: {rewards.mean():.3f}")
    envs.close()
