"""DDPG with settings by tyro, a saved checkpoint at intervals and an evaluation."""

from dataclasses import dataclass
from pathlib import Path

import gymnasium as gym
import numpy as np
import torch
import tyro
from torch import nn


@dataclass
class Args:
    """Settings of the training."""

    env_id: str = "MountainCarContinuous-v0"
    total_timesteps: int = 5000
    buffer_size: int = int(1e6)
    learning_starts: int = 1000
    policy_frequency: int = 25
    batch_size: int = 256
    width: int = 2048
    save_every: int = 2000
    save_to: str = "ddpg.pt"


class Net(nn.Module):
    """A network of two wide layers."""

    def __init__(self, inputs: int, outputs: int, width: int, squash: bool) -> None:
        super().__init__()
        self.fc1 = nn.Linear(inputs, width)
        self.fc2 = nn.Linear(width, width)
        self.out = nn.Linear(width, outputs)
        self.squash = squash

    def forward(self, *x: torch.Tensor) -> torch.Tensor:
        hidden = self.fc2(self.fc1(torch.cat(x, -1)).relu()).relu()
        out: torch.Tensor = self.out(hidden)
        return out.tanh() if self.squash else out


class Replay:
    """Transitions in numpy, resident only where they were written."""

    def __init__(self, size: int, inputs: int, outputs: int) -> None:
        self.data = np.zeros((size, 2 * inputs + outputs + 1), np.float32)
        self.inputs, self.count = inputs, 0

    def add(self, *parts: np.ndarray) -> None:
        """Write one row."""
        self.data[self.count % len(self.data)] = np.concatenate(parts)
        self.count += 1

    def sample(self, batch: int) -> tuple[torch.Tensor, ...]:
        """State, next state, action and reward of some rows."""
        rows = np.random.randint(0, min(self.count, len(self.data)), batch)
        got = torch.from_numpy(self.data[rows])
        n = self.inputs
        return got[:, :n], got[:, n : 2 * n], got[:, 2 * n : -1], got[:, -1:]


def evaluate(env_id: str, actor: Net) -> float:
    """The return of one episode without noise."""
    env, total = gym.make(env_id), 0.0
    obs, _ = env.reset(seed=7)
    for _ in range(200):
        with torch.no_grad():
            obs, reward, *_ = env.step(actor(torch.as_tensor(obs)).numpy())
        total += float(reward)
    env.close()
    return total


if __name__ == "__main__":
    args = tyro.cli(Args)
    env = gym.make(args.env_id)
    n_in = int(np.prod(env.observation_space.shape or ()))
    n_out = int(np.prod(env.action_space.shape or ()))
    actor, target_actor = (Net(n_in, n_out, args.width, True) for _ in range(2))
    qf1, qf1_target = (Net(n_in + n_out, 1, args.width, False) for _ in range(2))
    target_actor.load_state_dict(actor.state_dict())
    qf1_target.load_state_dict(qf1.state_dict())
    q_optimizer = torch.optim.Adam(qf1.parameters(), lr=3e-4)
    actor_optimizer = torch.optim.Adam(actor.parameters(), lr=3e-4)
    rb = Replay(args.buffer_size, n_in, n_out)
    obs, _ = env.reset(seed=1)
    for global_step in range(1, args.total_timesteps + 1):
        with torch.no_grad():
            noisy = actor(torch.as_tensor(obs)).numpy() + np.random.normal(0, 0.1, n_out)
        action = np.clip(noisy, -1, 1).astype(np.float32)
        next_obs, reward, terminated, truncated, _ = env.step(action)
        rb.add(obs, next_obs, action, np.array([reward], np.float32))
        obs = env.reset()[0] if terminated or truncated else next_obs
        if global_step > args.learning_starts and global_step % args.policy_frequency == 0:
            s, s2, a, r = rb.sample(args.batch_size)
            with torch.no_grad():
                y = r + 0.99 * qf1_target(s2, target_actor(s2))
            qf1_loss = (qf1(s, a) - y).pow(2).mean()
            q_optimizer.zero_grad()
            qf1_loss.backward()
            q_optimizer.step()
            actor_loss = -qf1(s, actor(s)).mean()
            actor_optimizer.zero_grad()
            actor_loss.backward()
            actor_optimizer.step()
            for net, target in ((actor, target_actor), (qf1, qf1_target)):
                for p, t in zip(net.parameters(), target.parameters(), strict=True):
                    t.data.copy_(0.005 * p.data + 0.995 * t.data)
        if global_step % args.save_every == 0:
            both = {"actor": actor.state_dict(), "optimizer": actor_optimizer.state_dict()}
            torch.save(both, Path(args.save_to))
            print(f"step {global_step}: return {evaluate(args.env_id, actor):.2f}")
    env.close()
