"""REDQ: many critics and many updates a step, with settings from environment variables."""

from __future__ import annotations

import os

import gymnasium as gym
import numpy as np
import torch
from torch import nn

CAPACITY = int(os.environ.get("CAPACITY", "50000"))
BATCH = int(os.environ.get("BATCH", "256"))
CRITICS = int(os.environ.get("CRITICS", "8"))
UPDATES_PER_STEP = int(os.environ.get("UTD", "4"))
WIDTH = int(os.environ.get("WIDTH", "320"))
START = int(os.environ.get("START", "900"))
STEPS = int(os.environ.get("STEPS", "930"))
RAYS = int(os.environ.get("RAYS", "700"))


class Rays(gym.ObservationWrapper):
    """A pendulum that is seen by many rays."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self.mix = np.random.default_rng(0).standard_normal((3, RAYS)).astype(np.float32)
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (RAYS,), np.float32)

    def observation(self, observation: np.ndarray) -> np.ndarray:
        """What the rays see."""
        return (observation @ self.mix).astype(np.float32)


class Ensemble(nn.Module):
    """Networks side by side, as products of batches."""

    def __init__(self, n_in: int) -> None:
        super().__init__()
        sizes = [(n_in, WIDTH), (WIDTH, WIDTH), (WIDTH, 1)]
        self.weights = nn.ParameterList(
            [nn.Parameter(torch.randn(CRITICS, i, o) / i**0.5) for i, o in sizes]
        )
        self.biases = nn.ParameterList([nn.Parameter(torch.zeros(CRITICS, 1, o)) for _, o in sizes])

    def forward(self, obs: torch.Tensor, act: torch.Tensor) -> torch.Tensor:
        """A value of each critic for each row."""
        x = torch.cat([obs, act], -1).expand(CRITICS, -1, -1)
        for at, (w, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(b, x, w)
            x = x.relu() if at < 2 else x
        return x[..., 0]


class Actor(nn.Module):
    """A squashed Gaussian."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_in, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
        self.out = nn.Linear(WIDTH, 2 * n_out)

    def forward(self, obs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """An action and the logarithm of its density."""
        mean, log_std = self.out(self.body(obs).relu()).chunk(2, -1)
        dist = torch.distributions.Normal(mean, log_std.clamp(-5, 2).exp())
        raw = dist.rsample()
        act = raw.tanh()
        return act, (dist.log_prob(raw) - (1 - act**2 + 1e-6).log()).sum(-1)


class Memory:
    """Tensors for all transitions, made as a whole."""

    def __init__(self, n_in: int, n_out: int) -> None:
        self.obs, self.nxt = torch.zeros(CAPACITY, n_in), torch.zeros(CAPACITY, n_in)
        self.act = torch.zeros(CAPACITY, n_out)
        self.rew, self.end = torch.zeros(CAPACITY), torch.zeros(CAPACITY)
        self.size = 0

    def put(self, *parts) -> None:
        """Write one transition."""
        row = self.size % CAPACITY
        for to, part in zip((self.obs, self.act, self.rew, self.nxt, self.end), parts, strict=True):
            to[row] = torch.as_tensor(part)
        self.size += 1

    def draw(self) -> list[torch.Tensor]:
        """A batch."""
        rows = torch.randint(min(self.size, CAPACITY), (BATCH,))
        return [part[rows] for part in (self.obs, self.act, self.rew, self.nxt, self.end)]


def run() -> None:
    """Train to the end."""
    env = Rays(gym.make("Pendulum-v1"))
    n_out = env.action_space.shape[0]
    actor, critic, target = Actor(RAYS, n_out), Ensemble(RAYS + n_out), Ensemble(RAYS + n_out)
    target.load_state_dict(critic.state_dict())
    actor_optim = torch.optim.Adam(actor.parameters(), lr=3e-4)
    critic_optim = torch.optim.Adam(critic.parameters(), lr=3e-4)
    memory = Memory(RAYS, n_out)
    obs, _ = env.reset(seed=5)
    for step in range(STEPS):
        if step < START:
            act = env.action_space.sample() / 2
        else:
            with torch.no_grad():
                act = actor(torch.from_numpy(obs)[None])[0][0].numpy()
        nxt, rew, term, trunc, _ = env.step(2 * act)
        memory.put(obs, act, rew, nxt, float(term))
        obs = env.reset()[0] if term or trunc else nxt
        if step < START:
            continue
        for _ in range(UPDATES_PER_STEP):
            o, a, r, o2, d = memory.draw()
            with torch.no_grad():
                a2, logp = actor(o2)
                two = target(o2, a2)[torch.randperm(CRITICS)[:2]].min(0).values
                y = r + 0.99 * (1 - d) * (two - 0.2 * logp)
            loss = ((critic(o, a) - y) ** 2).mean()
            critic_optim.zero_grad()
            loss.backward()
            critic_optim.step()
            for p, t in zip(critic.parameters(), target.parameters(), strict=True):
                t.data.mul_(0.995).add_(0.005 * p.data)
        new, logp = actor(o)
        loss = (0.2 * logp - critic(o, new).mean(0)).mean()
        actor_optim.zero_grad()
        loss.backward()
        actor_optim.step()


if __name__ == "__main__":
    run()
