"""SAC in classes; its settings are dataclasses in a dataclass that tyro reads."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import gymnasium as gym
import numpy as np
import torch
import tyro
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812


@dataclass
class ReplayConfig:
    capacity: int = 60_000
    batch_size: int = 512
    warmup: int = 1_000


@dataclass
class NetworkConfig:
    hidden_dim: int = 512
    lr: float = 3e-4


@dataclass
class Config:
    seed: int = 0
    beams: int = 400
    env_steps: int = 2_400
    utd_every: int = 4
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    net: NetworkConfig = field(default_factory=NetworkConfig)


class Lidar(gym.ObservationWrapper):
    """Pendulum behind a row of beams."""

    def __init__(self, env: gym.Env, beams: int) -> None:
        super().__init__(env)
        self.observation_space = gym.spaces.Box(-1, 1, (beams,), np.float32)
        self.angles = np.linspace(0, 2 * np.pi, beams, dtype=np.float32)

    def observation(self, observation: np.ndarray) -> np.ndarray:
        x, y, speed = observation
        return np.asarray(np.cos(self.angles + np.arctan2(y, x)) * (1 - speed / 16), np.float32)


class Replay:
    def __init__(self, cfg: ReplayConfig, n_obs: int, n_act: int) -> None:
        self.obs = np.empty((cfg.capacity, n_obs), np.float32)
        self.next_obs = np.empty((cfg.capacity, n_obs), np.float32)
        self.act = np.empty((cfg.capacity, n_act), np.float32)
        self.rew = np.empty((cfg.capacity, 1), np.float32)
        self.cfg, self.n = cfg, 0

    def push(self, obs, act, rew, next_obs) -> None:  # type: ignore[no-untyped-def]
        i = self.n % self.cfg.capacity
        self.obs[i], self.act[i], self.rew[i], self.next_obs[i] = obs, act, rew, next_obs
        self.n += 1

    def draw(self) -> list[Tensor]:
        rows = np.random.randint(0, min(self.n, self.cfg.capacity), self.cfg.batch_size)
        held = (self.obs, self.act, self.rew, self.next_obs)
        return [torch.from_numpy(array[rows]) for array in held]


def mlp(inputs: int, outputs: int, hidden: int) -> nn.Sequential:
    layers = [nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(hidden, outputs))


class SAC:
    def __init__(self, cfg: Config, n_obs: int, n_act: int) -> None:
        hidden = cfg.net.hidden_dim
        self.pi = mlp(n_obs, 2 * n_act, hidden)
        self.critics = nn.ModuleList([mlp(n_obs + n_act, 1, hidden) for _ in range(2)])
        self.targets = copy.deepcopy(self.critics).requires_grad_(False)
        self.log_alpha = torch.zeros(1, requires_grad=True)
        self.pi_opt = torch.optim.AdamW(self.pi.parameters(), lr=cfg.net.lr)
        self.q_opt = torch.optim.AdamW(self.critics.parameters(), lr=cfg.net.lr)
        self.alpha_opt = torch.optim.AdamW([self.log_alpha], lr=cfg.net.lr)
        self.target_entropy = -float(n_act)

    def sample(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_std = self.pi(obs).chunk(2, -1)
        normal = torch.distributions.Normal(mean, log_std.clamp(-5, 2).exp())
        raw = normal.rsample()
        act = raw.tanh()
        return act, (normal.log_prob(raw) - (1 - act.pow(2) + 1e-6).log()).sum(-1, keepdim=True)

    def learn(self, obs: Tensor, act: Tensor, rew: Tensor, nxt: Tensor) -> float:
        alpha = self.log_alpha.exp().detach()
        with torch.no_grad():
            a2, logp2 = self.sample(nxt)
            q2 = torch.min(*(q(torch.cat([nxt, a2], -1)) for q in self.targets))
            goal = rew + 0.99 * (q2 - alpha * logp2)
        q_loss = sum(F.mse_loss(q(torch.cat([obs, act], -1)), goal) for q in self.critics)
        self.q_opt.zero_grad(set_to_none=True)
        q_loss.backward()
        self.q_opt.step()
        a, logp = self.sample(obs)
        pi_loss = (
            alpha * logp - torch.min(*(q(torch.cat([obs, a], -1)) for q in self.critics))
        ).mean()
        self.pi_opt.zero_grad(set_to_none=True)
        pi_loss.backward()
        self.pi_opt.step()
        alpha_loss = -(self.log_alpha * (logp.detach() + self.target_entropy)).mean()
        self.alpha_opt.zero_grad(set_to_none=True)
        alpha_loss.backward()
        self.alpha_opt.step()
        with torch.no_grad():
            for t, s in zip(self.targets.parameters(), self.critics.parameters(), strict=True):
                t.lerp_(s, 0.005)
        return float(q_loss)


def main(cfg: Config) -> None:
    torch.manual_seed(cfg.seed)
    env = Lidar(gym.make("Pendulum-v1"), cfg.beams)
    n_act = int(np.prod(env.action_space.shape))
    agent, replay = SAC(cfg, cfg.beams, n_act), Replay(cfg.replay, cfg.beams, n_act)
    obs, _ = env.reset(seed=cfg.seed)
    for step in range(cfg.env_steps):
        if step < cfg.replay.warmup:
            act = np.random.uniform(-1, 1, n_act).astype(np.float32)
        else:
            with torch.no_grad():
                act = agent.sample(torch.from_numpy(obs)[None])[0][0].numpy()
        nxt, rew, terminated, truncated, _ = env.step(2 * act)
        replay.push(obs, act, rew, nxt)
        obs = env.reset()[0] if terminated or truncated else nxt
        if step >= cfg.replay.warmup and step % cfg.utd_every == 0:
            loss = agent.learn(*replay.draw())
            if step % 400 == 0:
                print(f"step {step}: critics {loss:.3f}")


if __name__ == "__main__":
    main(tyro.cli(Config))
