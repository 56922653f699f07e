"""PPO with an LSTM in several equal processes of torchrun, which average gradients themselves."""

import argparse
from dataclasses import dataclass, fields

import numpy as np
import torch
import torch.distributed as dist
from torch import nn


@dataclass
class Config:
    envs: int = 48
    horizon: int = 64
    signals: int = 900
    hidden: int = 384
    epochs: int = 2
    updates: int = 12


class Tones:
    """Many little envs: name the tone that was loudest two steps ago."""

    def __init__(self, config: Config, seed: int) -> None:
        self.num_envs, self.signals = config.envs, config.signals
        self.rng = np.random.default_rng(seed)

    def reset(self) -> np.ndarray:
        self.earlier = [np.zeros(self.num_envs, np.int64)] * 2
        return self._next()

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rewards = (actions == self.earlier[0]).astype(np.float32)
        return self._next(), rewards

    def _next(self) -> np.ndarray:
        heard = self.rng.random((self.num_envs, self.signals), np.float32)
        self.earlier = [self.earlier[1], heard[:, :6].argmax(1)]
        return heard


class Listener(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.inner = nn.Linear(config.signals, config.hidden)
        self.memory = nn.LSTM(config.hidden, config.hidden)
        self.logits, self.value = nn.Linear(config.hidden, 6), nn.Linear(config.hidden, 1)

    def forward(self, heard: torch.Tensor, state: tuple | None = None) -> tuple:
        found, state = self.memory(torch.tanh(self.inner(heard)), state)
        return torch.distributions.Categorical(logits=self.logits(found)), self.value(found), state


def parsed() -> Config:
    parser = argparse.ArgumentParser(description=__doc__)
    for field in fields(Config):
        parser.add_argument(f"--{field.name}", type=int, default=field.default)
    return Config(**vars(parser.parse_args()))


def main() -> None:
    config = parsed()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    listener = Listener(config)
    optimizer = torch.optim.Adam(listener.parameters(), lr=3e-4)
    env = Tones(config, dist.get_rank())
    heard = torch.zeros(config.horizon, config.envs, config.signals)
    actions = torch.zeros(config.horizon, config.envs, dtype=torch.int64)
    rewards, before = torch.zeros(2, config.horizon, config.envs)
    now, state = torch.from_numpy(env.reset()), None
    for _ in range(config.updates):
        start = None if state is None else tuple(part.detach() for part in state)
        with torch.no_grad():
            for step in range(config.horizon):
                chances, _, state = listener(now[None], state)
                action = chances.sample()
                heard[step], actions[step] = now, action[0]
                before[step] = chances.log_prob(action)[0]
                following, reward = env.step(action[0].numpy())
                now, rewards[step] = torch.from_numpy(following), torch.from_numpy(reward)
        for _ in range(config.epochs):
            chances, values, _ = listener(heard, start)
            gain = rewards - values.squeeze(-1)
            ratio = (chances.log_prob(actions) - before).exp()
            clipped = torch.min(ratio * gain.detach(), ratio.clamp(0.8, 1.2) * gain.detach())
            loss = gain.pow(2).mean() - clipped.mean() - 0.01 * chances.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            for parameter in listener.parameters():
                dist.all_reduce(parameter.grad)
                parameter.grad /= dist.get_world_size()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
