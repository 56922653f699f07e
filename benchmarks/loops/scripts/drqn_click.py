"""Recurrent DQN over whole episodes, with options by click and episodes in a list that is cut."""

from __future__ import annotations

import random

import click
import gymnasium as gym
import numpy as np
import torch
from torch import nn


class Padded(gym.ObservationWrapper):
    """CartPole with many more figures than it has."""

    def __init__(self, env: gym.Env, width: int) -> None:
        super().__init__(env)
        self.width = width
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (width,), np.float32)

    def observation(self, observation: np.ndarray) -> np.ndarray:
        """The four figures, repeated."""
        return np.resize(observation, self.width).astype(np.float32)


class QNet(nn.Module):
    """A recurrent network of values."""

    def __init__(self, inputs: int, hidden: int, actions: int) -> None:
        super().__init__()
        self.inp = nn.Linear(inputs, hidden)
        self.lstm = nn.LSTM(hidden, hidden, batch_first=True)
        self.head = nn.Linear(hidden, actions)

    def forward(self, x, state=None):
        """Values for a batch of sequences, and the state after them."""
        out, state = self.lstm(torch.relu(self.inp(x)), state)
        return self.head(out), state


@click.command()
@click.option("--episodes", default=60)
@click.option("--keep-episodes", default=40, help="episodes in the replay")
@click.option("--seq-len", default=24)
@click.option("--batch-size", default=96)
@click.option("--hidden", default=320)
@click.option("--obs-width", default=1500)
@click.option("--updates-per-episode", default=1)
def main(episodes, keep_episodes, seq_len, batch_size, hidden, obs_width, updates_per_episode):
    """Train for so many episodes."""
    torch.manual_seed(1)
    env = Padded(gym.make("CartPole-v1"), obs_width)
    online, target = QNet(obs_width, hidden, 2), QNet(obs_width, hidden, 2)
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.Adam(online.parameters(), lr=5e-4)
    replay: list[dict[str, np.ndarray]] = []
    for episode in range(episodes):
        obs, _ = env.reset(seed=episode)
        state, done = None, False
        seen, acts, rews, dones = [obs], [], [], []
        epsilon = max(0.05, 1.0 - episode / 100)
        while not done and len(acts) < 60:
            with torch.no_grad():
                q, state = online(torch.from_numpy(obs)[None, None], state)
            act = random.randrange(2) if random.random() < epsilon else int(q[0, 0].argmax())
            obs, rew, term, trunc, _ = env.step(act)
            done = term or trunc
            seen.append(obs)
            acts.append(act)
            rews.append(rew)
            dones.append(term)
        replay.append(
            {
                "obs": np.stack(seen),
                "act": np.array(acts),
                "rew": np.array(rews, np.float32),
                "done": np.array(dones, np.float32),
            }
        )
        replay = replay[-keep_episodes:]
        if len(replay) < 16:
            continue
        for _ in range(updates_per_episode):
            x = torch.zeros(batch_size, seq_len + 1, obs_width)
            a = torch.zeros(batch_size, seq_len, dtype=torch.long)
            r, d, m = (torch.zeros(batch_size, seq_len) for _ in range(3))
            for row, chosen in enumerate(random.choices(replay, k=batch_size)):
                start = random.randrange(max(1, len(chosen["act"]) - seq_len + 1))
                n = min(seq_len, len(chosen["act"]) - start)
                x[row, : n + 1] = torch.from_numpy(chosen["obs"][start : start + n + 1])
                a[row, :n] = torch.from_numpy(chosen["act"][start : start + n])
                r[row, :n] = torch.from_numpy(chosen["rew"][start : start + n])
                d[row, :n] = torch.from_numpy(chosen["done"][start : start + n])
                m[row, :n] = 1
            with torch.no_grad():
                best = target(x)[0][:, 1:].max(-1).values
            q = online(x[:, :-1])[0].gather(-1, a[..., None])[..., 0]
            loss = (m * (q - r - 0.99 * (1 - d) * best) ** 2).sum() / m.sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if episode % 10 == 0:
            target.load_state_dict(online.state_dict())


if __name__ == "__main__":
    main()
