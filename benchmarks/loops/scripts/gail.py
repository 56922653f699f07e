"""Adversarial imitation: a discriminator between an expert's pairs and one's own, then PPO."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Normal
from torch.utils.data import DataLoader, TensorDataset


@dataclass(frozen=True)
class Options:
    """What the command line may change."""

    expert_samples: int = 200_000
    rollout: int = 1_024
    disc_batch: int = 8_192
    policy_batch: int = 512
    rounds: int = 4
    width: int = 700

    @classmethod
    def parse(cls) -> Options:
        """From the command line."""
        parser = argparse.ArgumentParser()
        for name, default in vars(cls()).items():
            parser.add_argument(f"--{name}", type=int, default=default)
        return cls(**vars(parser.parse_args()))


def expert_pairs(count: int) -> torch.Tensor:
    """States of a pendulum, and what a simple controller does."""
    angle = torch.rand(count) * 2 * np.pi
    speed = torch.rand(count) * 16 - 8
    torque = (-3 * angle.sin() - 0.5 * speed).clamp(-2, 2)
    return torch.stack([angle.cos(), angle.sin(), speed, torque], 1)


def network(inputs: int, width: int) -> nn.Sequential:
    """Two hidden layers and one output."""
    return nn.Sequential(
        nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
    )


def main(opts: Options) -> None:
    """Imitate."""
    loader = DataLoader(
        TensorDataset(expert_pairs(opts.expert_samples)), opts.disc_batch, shuffle=True
    )
    policy, value, judge = (network(n, opts.width) for n in (3, 3, 4))
    policy_optim = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=3e-4)
    judge_optim = torch.optim.Adam(judge.parameters(), lr=3e-4)
    env = gym.make("Pendulum-v1")
    state, _ = env.reset(seed=2)
    for number in range(opts.rounds):
        states, actions = np.zeros((opts.rollout, 3), np.float32), np.zeros((opts.rollout, 1))
        for t in range(opts.rollout):
            with torch.no_grad():
                actions[t] = Normal(policy(torch.from_numpy(state)), 0.4).sample().numpy()
            states[t] = state
            state, _, terminated, truncated, _ = env.step(actions[t].astype(np.float32))
            if terminated or truncated:
                state, _ = env.reset()
        own = torch.from_numpy(np.concatenate([states, actions], 1)).float()
        for batch, (pairs,) in enumerate(loader):
            labels = torch.cat([torch.ones(len(pairs), 1), torch.zeros(len(own), 1)])
            guess = judge(torch.cat([pairs, own]))
            loss = nn.functional.binary_cross_entropy_with_logits(guess, labels)
            judge_optim.zero_grad()
            loss.backward()
            judge_optim.step()
            if batch == 2:
                break
        with torch.no_grad():
            rewards = -nn.functional.logsigmoid(-judge(own)).squeeze(1)
            returns = rewards.flip(0).cumsum(0).flip(0)
            old = Normal(policy(own[:, :3]), 0.4).log_prob(own[:, 3:]).squeeze(1)
            advantage = returns - value(own[:, :3]).squeeze(1)
        for rows in torch.randperm(opts.rollout).split(opts.policy_batch):
            seen = own[rows, :3]
            logp = Normal(policy(seen), 0.4).log_prob(own[rows, 3:]).squeeze(1)
            ratio = (logp - old[rows]).exp()
            gain = torch.min(ratio * advantage[rows], ratio.clamp(0.8, 1.2) * advantage[rows])
            miss = (value(seen).squeeze(1) - returns[rows]).pow(2)
            policy_optim.zero_grad()
            (miss.mean() - gain.mean()).backward()
            policy_optim.step()
        print(f"round {number}: judge {loss.item():.3f}, reward {rewards.mean():.3f}")


if __name__ == "__main__":
    main(Options.parse())
