"""DDPG with hindsight: whole episodes of goals in arrays, settings in a JSON file beside it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import torch
from torch import nn


class Reach(gym.Env):
    """A point that is to reach another one, seen with much else."""

    def __init__(self, length: int, markers: int) -> None:
        self.length, self.markers = length, markers
        goal = gym.spaces.Box(-1, 1, (8,), np.float32)
        seen = gym.spaces.Box(-9, 9, (8 + markers,), np.float32)
        self.observation_space = gym.spaces.Dict(
            {"observation": seen, "achieved_goal": goal, "desired_goal": goal}
        )
        self.action_space = gym.spaces.Box(-1, 1, (8,), np.float32)

    def _seen(self) -> dict[str, np.ndarray]:
        around = np.full(self.markers, self.at[0], np.float32)
        return {
            "observation": np.concatenate([self.at, around]),
            "achieved_goal": self.at.copy(),
            "desired_goal": self.goal,
        }

    def reset(self, *, seed=None, options=None):
        """Another goal."""
        super().reset(seed=seed)
        self.at = np.zeros(8, np.float32)
        self.goal = self.np_random.uniform(-1, 1, 8).astype(np.float32)
        self.time = 0
        return self._seen(), {}

    def step(self, action):
        """Move a little."""
        self.time += 1
        self.at = np.clip(self.at + 0.1 * action, -1, 1).astype(np.float32)
        reward = -float(np.linalg.norm(self.at - self.goal) > 0.2)
        return self._seen(), reward, False, self.time >= self.length, {}


class EpisodeBuffer:
    """All episodes in arrays of their own, made as a whole."""

    def __init__(self, episodes: int, length: int, sizes: dict[str, int]) -> None:
        self.data = {
            name: np.empty((episodes, length + (name in ("obs", "ag")), size), np.float32)
            for name, size in sizes.items()
        }
        self.episodes, self.length, self.stored = episodes, length, 0

    def store(self, episode: dict[str, list[np.ndarray]]) -> None:
        """Keep an episode in the place of the oldest."""
        for name, rows in episode.items():
            self.data[name][self.stored % self.episodes] = np.stack(rows)
        self.stored += 1

    def sample(self, batch: int, future: float) -> dict[str, torch.Tensor]:
        """Transitions, some with a goal that was reached later."""
        which = np.random.randint(min(self.stored, self.episodes), size=batch)
        when = np.random.randint(self.length, size=batch)
        later = when + 1 + ((self.length - when) * np.random.rand(batch)).astype(int)
        later = np.minimum(later, self.length)
        goal = self.data["goal"][which, when].copy()
        swapped = np.random.rand(batch) < future
        goal[swapped] = self.data["ag"][which[swapped], later[swapped]]
        reached = self.data["ag"][which, when + 1]
        reward = -(np.linalg.norm(reached - goal, axis=1) > 0.2).astype(np.float32)
        found = {
            "obs": self.data["obs"][which, when],
            "next": self.data["obs"][which, when + 1],
            "act": self.data["act"][which, when],
            "goal": goal,
            "rew": reward,
        }
        return {name: torch.from_numpy(part) for name, part in found.items()}


def net(inputs: int, width: int, outputs: int, *end: nn.Module) -> nn.Sequential:
    """Three layers."""
    return nn.Sequential(
        nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
        nn.Linear(width, outputs), *end,
    )  # fmt: skip


def main() -> None:
    """Train for some epochs."""
    text = Path(__file__).with_name("her_json.json").read_text()
    cfg = json.loads(text, object_hook=lambda found: SimpleNamespace(**found))
    env = Reach(cfg.episode_length, cfg.markers)
    n_obs, n_goal, n_act = 8 + cfg.markers, 8, 8
    actor = net(n_obs + n_goal, cfg.net.width, n_act, nn.Tanh())
    critic = net(n_obs + n_goal + n_act, cfg.net.width, 1)
    actor_target, critic_target = copy.deepcopy(actor), copy.deepcopy(critic)
    actor_optim = torch.optim.Adam(actor.parameters(), lr=1e-3)
    critic_optim = torch.optim.Adam(critic.parameters(), lr=1e-3)
    sizes = {"obs": n_obs, "ag": n_goal, "goal": n_goal, "act": n_act}
    buffer = EpisodeBuffer(cfg.buffer_episodes, cfg.episode_length, sizes)
    for epoch in range(cfg.epochs):
        for cycle in range(cfg.cycles):
            seen, _ = env.reset(seed=epoch * cfg.cycles + cycle)
            kept = {"obs": [seen["observation"]], "ag": [seen["achieved_goal"]]}
            kept |= {"goal": [], "act": []}
            over = False
            while not over:
                with torch.no_grad():
                    x = np.concatenate([seen["observation"], seen["desired_goal"]])
                    act = actor(torch.from_numpy(x)).numpy()
                act = np.clip(act + 0.2 * np.random.randn(n_act), -1, 1).astype(np.float32)
                kept["goal"].append(seen["desired_goal"])
                kept["act"].append(act)
                seen, _, _, over, _ = env.step(act)
                kept["obs"].append(seen["observation"])
                kept["ag"].append(seen["achieved_goal"])
            buffer.store(kept)
        for _ in range(cfg.updates):
            b = buffer.sample(cfg.batch_size, 0.8)
            now = torch.cat([b["obs"], b["goal"]], 1)
            then = torch.cat([b["next"], b["goal"]], 1)
            with torch.no_grad():
                q = critic_target(torch.cat([then, actor_target(then)], 1))[:, 0]
                y = (b["rew"] + 0.98 * q).clamp(-50, 0)
            q_loss = (critic(torch.cat([now, b["act"]], 1))[:, 0] - y).pow(2).mean()
            critic_optim.zero_grad()
            q_loss.backward()
            critic_optim.step()
            act = actor(now)
            loss = -critic(torch.cat([now, act], 1)).mean() + act.pow(2).mean()
            actor_optim.zero_grad()
            loss.backward()
            actor_optim.step()
        for one, slow in ((actor, actor_target), (critic, critic_target)):
            for p, s in zip(one.parameters(), slow.parameters(), strict=True):
                s.data.mul_(0.95).add_(0.05 * p.data)
        print(epoch, float(q_loss))


if __name__ == "__main__":
    main()
