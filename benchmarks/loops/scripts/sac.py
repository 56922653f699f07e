"""Soft actor-critic in one file: a replay of torch tensors, twin critics, tuned temperature."""

import argparse
import copy
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import nn, optim
from torch.distributions import Normal


class Cable(gym.Env[Any, Any]):
    """A cable of many joints, seen whole, is pulled at both ends."""

    def __init__(self, joints: int) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (joints,), np.float32)
        self.action_space = gym.spaces.Box(-1, 1, (4,), np.float32)
        self.joints = np.zeros(joints, np.float32)
        self.steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.joints = self.np_random.normal(size=self.joints.shape).astype(np.float32)
        self.steps = 0
        return self.joints.copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.joints[:2] += action[:2]
        self.joints[-2:] += action[2:]
        self.joints[1:-1] = (self.joints[:-2] + self.joints[2:]) / 2
        self.steps += 1
        reward = -float(np.abs(self.joints).mean())
        return self.joints.copy(), reward, False, self.steps >= 200, {}


class SoftQ(nn.Module):
    """The value of a pair of state and action."""

    def __init__(self, inputs: int, actions: int, width: int) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(inputs + actions, width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1),
        )  # fmt: skip

    def forward(self, x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        value: torch.Tensor = self.net(torch.cat([x, a], 1))
        return value.flatten()


class Actor(nn.Module):
    """A squashed Gaussian."""

    def __init__(self, inputs: int, actions: int, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.mean, self.logstd = nn.Linear(width, actions), nn.Linear(width, actions)

    def sample(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """An action and its log probability."""
        hidden = self.body(x)
        normal = Normal(self.mean(hidden), self.logstd(hidden).clamp(-5, 2).exp())
        raw = normal.rsample()
        action = raw.tanh()
        return action, (normal.log_prob(raw) - (1 - action**2 + 1e-6).log()).sum(1)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--total-timesteps", type=int, default=12_000)
parser.add_argument("--buffer-size", type=int, default=20_000)
parser.add_argument("--learning-starts", type=int, default=9_000)
parser.add_argument("--update-every", type=int, default=20)
parser.add_argument("--batch-size", type=int, default=256)
parser.add_argument("--width", type=int, default=256)
parser.add_argument("--joints", type=int, default=1_500)

if __name__ == "__main__":
    args = parser.parse_args()
    env = Cable(args.joints)
    actor = Actor(args.joints, 4, args.width)
    qf1, qf2 = SoftQ(args.joints, 4, args.width), SoftQ(args.joints, 4, args.width)
    qf1_target, qf2_target = copy.deepcopy(qf1), copy.deepcopy(qf2)
    q_optimizer = optim.Adam([*qf1.parameters(), *qf2.parameters()], lr=1e-3)
    actor_optimizer = optim.Adam(actor.parameters(), lr=3e-4)
    log_alpha = torch.zeros(1, requires_grad=True)
    a_optimizer = optim.Adam([log_alpha], lr=1e-3)
    rb_obs = torch.zeros((args.buffer_size, args.joints))
    rb_next = torch.zeros((args.buffer_size, args.joints))
    rb_actions = torch.zeros((args.buffer_size, 4))
    rb_rewards = torch.zeros(args.buffer_size)
    obs, info = env.reset(seed=1)
    for global_step in range(args.total_timesteps):
        if global_step < args.learning_starts:
            action = env.action_space.sample()
        else:
            with torch.no_grad():
                action = actor.sample(torch.as_tensor(obs)[None])[0][0].numpy()
        next_obs, reward, terminated, truncated, info = env.step(action)
        at = global_step % args.buffer_size
        rb_obs[at], rb_next[at] = torch.as_tensor(obs), torch.as_tensor(next_obs)
        rb_actions[at], rb_rewards[at] = torch.as_tensor(action), reward
        obs = env.reset()[0] if truncated else next_obs
        if global_step < args.learning_starts or global_step % args.update_every:
            continue
        inds = torch.randint(0, min(global_step + 1, args.buffer_size), (args.batch_size,))
        b_obs, b_next, b_actions = rb_obs[inds], rb_next[inds], rb_actions[inds]
        alpha = log_alpha.exp().item()
        with torch.no_grad():
            next_action, next_logp = actor.sample(b_next)
            smaller = torch.min(qf1_target(b_next, next_action), qf2_target(b_next, next_action))
            target = rb_rewards[inds] + 0.99 * (smaller - alpha * next_logp)
        q_loss = (qf1(b_obs, b_actions) - target).pow(2).mean()
        q_loss = q_loss + (qf2(b_obs, b_actions) - target).pow(2).mean()
        q_optimizer.zero_grad()
        q_loss.backward()
        q_optimizer.step()
        pi, logp = actor.sample(b_obs)
        actor_loss = (alpha * logp - torch.min(qf1(b_obs, pi), qf2(b_obs, pi))).mean()
        actor_optimizer.zero_grad()
        actor_loss.backward()
        actor_optimizer.step()
        alpha_loss = (-log_alpha.exp() * (logp.detach() - 4)).mean()
        a_optimizer.zero_grad()
        alpha_loss.backward()
        a_optimizer.step()
        for q, q_target in ((qf1, qf1_target), (qf2, qf2_target)):
            for p, p_target in zip(q.parameters(), q_target.parameters(), strict=True):
                p_target.data.lerp_(p.data, 0.005)
        if global_step % 1000 == 0:
            print(f"step {global_step}: q loss {q_loss.item():.3f}, alpha {alpha:.3f}")
