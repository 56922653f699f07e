"""Phasic policy gradient: the rollouts of a phase are kept for an auxiliary one."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical, kl_divergence


class Config:
    """Settings, as attributes of a class."""

    num_envs = 10
    num_steps = 96
    n_phi = 3
    phases = 2
    epochs = 2
    minibatches = 4
    aux_epochs = 2
    aux_batch_rollouts = 2
    copies = 300
    width = 384


class Wide(gym.vector.VectorObservationWrapper):
    """Each observation many times over."""

    def __init__(self, envs: gym.vector.VectorEnv, copies: int) -> None:
        super().__init__(envs)
        self.copies = copies
        n = envs.single_observation_space.shape[0] * copies
        self.single_observation_space = gym.spaces.Box(-np.inf, np.inf, (n,), np.float32)

    def observations(self, observations: np.ndarray) -> np.ndarray:
        """Those of all envs."""
        return np.tile(observations, (1, self.copies)).astype(np.float32)


class Agent(nn.Module):
    """A policy with a value head of its own, and a network of values."""

    def __init__(self, n_in: int, n_out: int, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.pi, self.aux = nn.Linear(width, n_out), nn.Linear(width, 1)
        self.value = nn.Sequential(nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, x: torch.Tensor) -> tuple[Categorical, torch.Tensor, torch.Tensor]:
        """The policy, its auxiliary value and the value."""
        h = self.body(x)
        return Categorical(logits=self.pi(h)), self.aux(h)[..., 0], self.value(x)[..., 0]


def main() -> None:
    """Train for some phases."""
    c = Config()
    envs = Wide(gym.make_vec("Acrobot-v1", c.num_envs, vectorization_mode="sync"), c.copies)
    n_in = envs.single_observation_space.shape[0]
    agent = Agent(n_in, envs.single_action_space.n, c.width)
    optimizer = torch.optim.Adam(agent.parameters(), lr=5e-4, eps=1e-8)
    obs = torch.from_numpy(envs.reset(seed=1)[0])
    steps, n = c.num_steps, c.num_envs
    for phase in range(c.phases):
        aux_obs = torch.zeros(steps, n * c.n_phi, n_in)
        aux_returns = torch.zeros(steps, n * c.n_phi)
        for rollout in range(c.n_phi):
            seen = torch.zeros(steps, n, n_in)
            acts = torch.zeros(steps, n, dtype=torch.long)
            logps, vals, rews, dones = (torch.zeros(steps, n) for _ in range(4))
            for t in range(steps):
                with torch.no_grad():
                    pi, _, v = agent(obs)
                act = pi.sample()
                seen[t], acts[t], logps[t], vals[t] = obs, act, pi.log_prob(act), v
                nxt, rew, term, trunc, _ = envs.step(act.numpy())
                obs = torch.from_numpy(nxt)
                rews[t], dones[t] = torch.from_numpy(rew), torch.from_numpy(term | trunc)
            with torch.no_grad():
                ret = agent(obs)[2]
            returns = torch.zeros(steps, n)
            for t in reversed(range(steps)):
                ret = rews[t] + 0.99 * (1 - dones[t]) * ret
                returns[t] = ret
            flat, fa = seen.reshape(-1, n_in), acts.reshape(-1)
            adv, fr, fl = (returns - vals).reshape(-1), returns.reshape(-1), logps.reshape(-1)
            for _ in range(c.epochs):
                for rows in torch.randperm(steps * n).chunk(c.minibatches):
                    pi, _, v = agent(flat[rows])
                    ratio = (pi.log_prob(fa[rows]) - fl[rows]).exp()
                    gain = torch.min(ratio * adv[rows], ratio.clamp(0.8, 1.2) * adv[rows])
                    loss = -gain.mean() + 0.5 * (v - fr[rows]).pow(2).mean()
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            part = slice(rollout * n, (rollout + 1) * n)
            aux_obs[:, part], aux_returns[:, part] = seen, returns
        with torch.no_grad():
            old = agent(aux_obs)[0].logits
        for _ in range(c.aux_epochs):
            for cols in torch.randperm(n * c.n_phi).split(c.aux_batch_rollouts * n):
                pi, aux, v = agent(aux_obs[:, cols])
                kl = kl_divergence(Categorical(logits=old[:, cols]), pi).mean()
                fit = (aux - aux_returns[:, cols]).pow(2) + (v - aux_returns[:, cols]).pow(2)
                loss = kl + 0.5 * fit.mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        print(phase, float(rews.sum()))


if __name__ == "__main__":
    main()
