"""PPO over thousands of envs that are one tensor; settings are a plain dataclass, no options."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.distributions import Normal


@dataclass
class Config:
    """Settings: edit them here."""

    num_envs: int = 2048
    horizon: int = 32
    obs_dim: int = 256
    act_dim: int = 6
    minibatches: int = 4
    epochs: int = 1
    iterations: int = 5
    units: tuple[int, ...] = (128, 64)


cfg = Config()


class Swarm:
    """Drones as rows of a matrix."""

    def __init__(self) -> None:
        self.state = torch.zeros(cfg.num_envs, cfg.obs_dim)
        self.mix = torch.randn(cfg.act_dim, cfg.obs_dim) / cfg.obs_dim**0.5

    def step(self, actions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Observations, rewards and which ended."""
        self.state = 0.95 * self.state + actions.tanh() @ self.mix
        done = torch.rand(cfg.num_envs) < 0.01
        self.state[done] = 0
        return self.state, -self.state.square().mean(1), done


def build(outputs: int) -> nn.Sequential:
    """A network with the units of the settings."""
    layers: list[nn.Module] = []
    width = cfg.obs_dim
    for units in cfg.units:
        layers += [nn.Linear(width, units), nn.ELU()]
        width = units
    return nn.Sequential(*layers, nn.Linear(width, outputs))


def advantages_of(rewards: torch.Tensor, values: torch.Tensor, dones: torch.Tensor) -> torch.Tensor:
    """Generalized advantages."""
    out, last = torch.zeros_like(rewards), torch.zeros(cfg.num_envs)
    for t in reversed(range(cfg.horizon)):
        going = 1.0 - dones[t]
        delta = rewards[t] + 0.99 * values[t + 1] * going - values[t]
        last = delta + 0.99 * 0.95 * going * last
        out[t] = last
    return out


def run() -> None:
    """Train."""
    env = Swarm()
    actor, critic = build(cfg.act_dim), build(1)
    spread = nn.Parameter(torch.zeros(cfg.act_dim))
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters(), spread], lr=3e-4)
    experience = {
        "obs": torch.empty(cfg.horizon, cfg.num_envs, cfg.obs_dim),
        "actions": torch.empty(cfg.horizon, cfg.num_envs, cfg.act_dim),
        "logp": torch.empty(cfg.horizon, cfg.num_envs),
        "rewards": torch.empty(cfg.horizon, cfg.num_envs),
        "dones": torch.empty(cfg.horizon, cfg.num_envs),
        "values": torch.empty(cfg.horizon + 1, cfg.num_envs),
    }
    obs = env.state
    for iteration in range(cfg.iterations):
        with torch.no_grad():
            for t in range(cfg.horizon):
                policy = Normal(actor(obs), spread.exp())
                action = policy.sample()
                experience["obs"][t], experience["actions"][t] = obs, action
                experience["logp"][t] = policy.log_prob(action).sum(-1)
                experience["values"][t] = critic(obs).squeeze(-1)
                obs, experience["rewards"][t], experience["dones"][t] = env.step(action)
            experience["values"][-1] = critic(obs).squeeze(-1)
            advantages = advantages_of(
                experience["rewards"], experience["values"], experience["dones"]
            )
            returns = advantages + experience["values"][:-1]
        data = [experience["obs"], experience["actions"], experience["logp"], advantages, returns]
        flat = [part.flatten(0, 1) for part in data]
        for _ in range(cfg.epochs):
            order = torch.randperm(cfg.horizon * cfg.num_envs)
            shuffled = [part[order] for part in flat]
            for o, a, old, adv, ret in zip(
                *(part.chunk(cfg.minibatches) for part in shuffled), strict=True
            ):
                policy = Normal(actor(o), spread.exp())
                ratio = (policy.log_prob(a).sum(-1) - old).exp()
                gain = torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()
                loss = (critic(o).squeeze(-1) - ret).square().mean() - gain
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        print(f"iteration {iteration}: {experience['rewards'].mean():.4f}")


if __name__ == "__main__":
    run()
