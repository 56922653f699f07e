"""An actor-critic whose settings Hydra composes, in groups, from structured configs."""

from dataclasses import dataclass, field

import gymnasium as gym
import hydra
import numpy as np
import torch
from hydra.core.config_store import ConfigStore
from omegaconf import OmegaConf
from torch import nn


@dataclass
class EnvConf:
    id: str = "Acrobot-v1"
    n_envs: int = 24
    history: int = 96


@dataclass
class AlgoConf:
    rollout_length: int = 128
    n_minibatches: int = 2
    n_epochs: int = 2
    lr: float = 3e-4
    hidden_size: int = 768


@dataclass
class Conf:
    seed: int = 3
    iterations: int = 5
    env: EnvConf = field(default_factory=EnvConf)
    algo: AlgoConf = field(default_factory=AlgoConf)


ConfigStore.instance().store(name="config", node=Conf)


class Memory:
    """The last observations of each env, as one vector."""

    def __init__(self, n_envs: int, history: int, size: int) -> None:
        self.window = np.zeros((n_envs, history, size), np.float32)

    def see(self, obs: np.ndarray) -> torch.Tensor:
        self.window = np.roll(self.window, -1, axis=1)
        self.window[:, -1] = obs
        return torch.from_numpy(self.window.reshape(len(obs), -1).copy())


@hydra.main(version_base=None, config_name="config")
def train(conf: Conf) -> None:
    print(OmegaConf.to_yaml(conf))
    torch.manual_seed(conf.seed)
    envs = gym.make_vec(conf.env.id, num_envs=conf.env.n_envs, vectorization_mode="sync")
    size = envs.single_observation_space.shape[0]
    inputs, hidden = size * conf.env.history, conf.algo.hidden_size
    body = nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
    policy, value = nn.Linear(hidden, envs.single_action_space.n), nn.Linear(hidden, 1)
    model = nn.ModuleDict({"body": body, "policy": policy, "value": value})
    optim = torch.optim.RMSprop(model.parameters(), lr=conf.algo.lr)
    memory = Memory(conf.env.n_envs, conf.env.history, size)
    state = memory.see(envs.reset(seed=conf.seed)[0])
    for iteration in range(conf.iterations):
        batch: dict[str, list[torch.Tensor]] = {k: [] for k in ("obs", "act", "rew", "logp")}
        for _ in range(conf.algo.rollout_length):
            with torch.no_grad():
                dist = torch.distributions.Categorical(logits=policy(body(state)))
                action = dist.sample()
            obs, reward, _, _, _ = envs.step(action.numpy())
            found = (state, action, torch.as_tensor(reward, dtype=torch.float32))
            for key, item in zip(batch, (*found, dist.log_prob(action)), strict=True):
                batch[key].append(item)
            state = memory.see(obs)
        rewards, returns = torch.stack(batch["rew"]), []
        with torch.no_grad():
            future = value(body(state)).squeeze(-1)
        for reward in reversed(rewards):
            future = reward + 0.99 * future
            returns.insert(0, future)
        flat = {k: torch.cat(v) for k, v in batch.items() if k != "rew"}
        flat["ret"] = torch.cat(returns)
        for _ in range(conf.algo.n_epochs):
            for rows in torch.randperm(len(flat["ret"])).chunk(conf.algo.n_minibatches):
                hid = body(flat["obs"][rows])
                dist = torch.distributions.Categorical(logits=policy(hid))
                val = value(hid).squeeze(-1)
                adv = (flat["ret"][rows] - val).detach()
                ratio = (dist.log_prob(flat["act"][rows]) - flat["logp"][rows]).exp()
                pg = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()
                loss = pg + 0.5 * (flat["ret"][rows] - val).pow(2).mean()
                optim.zero_grad()
                loss.backward()
                optim.step()
        print(f"iteration {iteration}: loss {loss.item():.3f}")


if __name__ == "__main__":
    train()
