"""Implicit Q-learning on a dataset in memory, with settings of a named tuple and a command line."""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional


class Settings(NamedTuple):
    """What can be set as `name=value`."""

    transitions: int = 120_000
    state_dim: int = 180
    action_dim: int = 12
    batch_size: int = 2_048
    hidden: int = 768
    steps: int = 20
    eval_every: int = 10


def mlp(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """Two hidden layers with layer norms."""
    return nn.Sequential(
        nn.Linear(inputs, hidden),
        nn.LayerNorm(hidden),
        nn.GELU(),
        nn.Linear(hidden, hidden),
        nn.GELU(),
        nn.Linear(hidden, outputs),
    )


def make_dataset(s: Settings) -> dict[str, torch.Tensor]:
    """A walk of some dynamics, made of noise."""
    rng = np.random.default_rng(3)
    observations = rng.standard_normal((s.transitions + 1, s.state_dim), np.float32)
    actions = rng.uniform(-1, 1, (s.transitions, s.action_dim)).astype(np.float32)
    rewards = observations[:-1, 0] + actions[:, 0]
    return {
        "observations": torch.from_numpy(observations[:-1]),
        "next_observations": torch.from_numpy(observations[1:].copy()),
        "actions": torch.from_numpy(actions),
        "rewards": torch.from_numpy(rewards),
    }


def evaluate(actor: nn.Module, data: dict[str, torch.Tensor]) -> float:
    """How far the policy's actions are from those of a part of the data."""
    with torch.no_grad():
        said = actor(data["observations"][:20_000])
        return float(functional.mse_loss(said, data["actions"][:20_000]))


def main() -> None:
    """Train so many steps."""
    given = dict(word.split("=", 1) for word in sys.argv[1:])
    s = Settings(**{name: int(value) for name, value in given.items()})
    torch.manual_seed(0)
    data = make_dataset(s)
    value, actor = mlp(s.state_dim, s.hidden, 1), mlp(s.state_dim, s.hidden, s.action_dim)
    both = [mlp(s.state_dim + s.action_dim, s.hidden, 1) for _ in range(4)]
    critics, targets = both[:2], both[2:]
    for critic, target in zip(critics, targets, strict=True):
        target.load_state_dict(critic.state_dict())
    v_opt = torch.optim.Adam(value.parameters(), 3e-4)
    a_opt = torch.optim.AdamW(actor.parameters(), 3e-4)
    q_opt = torch.optim.Adam([p for critic in critics for p in critic.parameters()], 3e-4)
    for step in range(s.steps):
        rows = torch.randint(s.transitions, (s.batch_size,))
        obs, nxt = data["observations"][rows], data["next_observations"][rows]
        act, rew = data["actions"][rows], data["rewards"][rows]
        with torch.no_grad():
            x = torch.cat([obs, act], -1)
            q = torch.minimum(targets[0](x), targets[1](x))[:, 0]
            next_v = value(nxt)[:, 0]
        diff = q - value(obs)[:, 0]
        v_loss = (torch.where(diff > 0, 0.7, 0.3) * diff**2).mean()
        v_opt.zero_grad(set_to_none=True)
        v_loss.backward()
        v_opt.step()
        y = rew + 0.99 * next_v
        q_loss = sum(functional.mse_loss(critic(x)[:, 0], y) for critic in critics)
        q_opt.zero_grad(set_to_none=True)
        q_loss.backward()
        q_opt.step()
        weight = torch.exp(3.0 * diff.detach()).clamp(max=100.0)
        a_loss = (weight * ((actor(obs) - act) ** 2).sum(-1)).mean()
        a_opt.zero_grad(set_to_none=True)
        a_loss.backward()
        a_opt.step()
        for critic, target in zip(critics, targets, strict=True):
            for p, t in zip(critic.parameters(), target.parameters(), strict=True):
                t.data.lerp_(p.data, 0.005)
        if (step + 1) % s.eval_every == 0:
            print(step + 1, evaluate(actor, data))


if __name__ == "__main__":
    main()
