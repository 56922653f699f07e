"""Independent Q-learning of all agents of a PettingZoo parallel env, one network, one replay."""

import argparse
import functools
import random

import gymnasium
import numpy as np
import torch
from pettingzoo import ParallelEnv
from torch import nn


class Foragers(ParallelEnv):
    """Agents on a field see a patch around themselves."""

    metadata = {"name": "foragers_v0"}  # noqa: RUF012

    def __init__(self, n_agents: int, patch: int, max_cycles: int = 100) -> None:
        self.possible_agents = [f"forager_{i}" for i in range(n_agents)]
        self.patch, self.max_cycles = patch, max_cycles

    @functools.cache  # noqa: B019
    def observation_space(self, agent):  # type: ignore[no-untyped-def]
        return gymnasium.spaces.Box(0, 255, (self.patch, self.patch), np.uint8)

    @functools.cache  # noqa: B019
    def action_space(self, agent):  # type: ignore[no-untyped-def]
        return gymnasium.spaces.Discrete(5)

    def _look(self):  # type: ignore[no-untyped-def]
        size = (len(self.agents), self.patch, self.patch)
        return dict(zip(self.agents, self.rng.integers(0, 255, size, np.uint8), strict=True))

    def reset(self, seed=None, options=None):  # type: ignore[no-untyped-def]
        self.rng = np.random.default_rng(seed)
        self.agents, self.cycle = list(self.possible_agents), 0
        return self._look(), {agent: {} for agent in self.agents}

    def step(self, actions):  # type: ignore[no-untyped-def]
        self.cycle += 1
        over = self.cycle >= self.max_cycles
        rewards = {agent: float(act == 0) for agent, act in actions.items()}
        ends = dict.fromkeys(self.agents, False)
        cut = dict.fromkeys(self.agents, over)
        seen, infos = self._look(), {agent: {} for agent in self.agents}
        if over:
            self.agents = []
        return seen, rewards, ends, cut, infos


def get_args() -> argparse.Namespace:
    p = argparse.ArgumentParser()
    p.add_argument("--n-agents", type=int, default=24)
    p.add_argument("--patch", type=int, default=48)
    p.add_argument("--memory-size", type=int, default=40_000)
    p.add_argument("--batch", type=int, default=256)
    p.add_argument("--episodes", type=int, default=12)
    p.add_argument("--learn-every", type=int, default=4)
    return p.parse_args()


def main() -> None:
    args = get_args()
    env = Foragers(args.n_agents, args.patch)
    shape = env.observation_space(env.possible_agents[0]).shape
    net, target = (
        nn.Sequential(
            nn.Conv2d(1, 32, 5, 2), nn.ReLU(), nn.Conv2d(32, 32, 3, 2), nn.ReLU(), nn.Flatten(),
            nn.LazyLinear(256), nn.ReLU(), nn.Linear(256, 5),
        )
        for _ in range(2)
    )  # fmt: skip
    for q in (net, target):
        q(torch.zeros(1, 1, *shape))
    target.load_state_dict(net.state_dict())
    opt = torch.optim.Adam(net.parameters(), lr=1e-4)
    states = np.zeros((args.memory_size, *shape), np.uint8)
    nexts = np.zeros((args.memory_size, *shape), np.uint8)
    acts = np.zeros(args.memory_size, np.int64)
    rews = np.zeros(args.memory_size, np.float32)
    stored = 0
    for episode in range(args.episodes):
        observations, _ = env.reset(seed=episode)
        while env.agents:
            stack = torch.from_numpy(np.stack(list(observations.values())))[:, None].float() / 255
            with torch.no_grad():
                best = net(stack).argmax(1).tolist()
            chosen = {
                agent: random.randrange(5) if random.random() < 0.2 else best[i]
                for i, agent in enumerate(observations)
            }
            following, rewards, _, _, _ = env.step(chosen)
            for agent, seen in observations.items():
                at = stored % args.memory_size
                states[at], nexts[at] = seen, following[agent]
                acts[at], rews[at] = chosen[agent], rewards[agent]
                stored += 1
            observations = following
            if stored > 4 * args.batch and env.cycle % args.learn_every == 0:
                rows = np.random.randint(0, min(stored, args.memory_size), args.batch)
                s = torch.from_numpy(states[rows])[:, None].float() / 255
                s2 = torch.from_numpy(nexts[rows])[:, None].float() / 255
                with torch.no_grad():
                    goal = torch.from_numpy(rews[rows]) + 0.97 * target(s2).max(1).values
                q = net(s).gather(1, torch.from_numpy(acts[rows])[:, None])[:, 0]
                loss = nn.functional.smooth_l1_loss(q, goal)
                opt.zero_grad()
                loss.backward()
                opt.step()
        target.load_state_dict(net.state_dict())
        print(f"episode {episode}: {stored} stored")


if __name__ == "__main__":
    main()
