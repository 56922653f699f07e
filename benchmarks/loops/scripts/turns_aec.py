"""Two players who take turns in an env of PettingZoo, and one network that learns from both."""

from __future__ import annotations

import argparse
import random
from collections import deque
from typing import ClassVar

import numpy as np
import torch
from gymnasium import spaces
from pettingzoo import AECEnv
from torch import nn


class Gomoku(AECEnv):
    """Five in a row on a board of any side, as planes of stones."""

    metadata: ClassVar = {"name": "gomoku"}

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side
        self.possible_agents = ["black", "white"]

    def observation_space(self, agent):
        """Planes of both and of whose turn it is."""
        return spaces.Box(0, 1, (3, self.side, self.side), np.float32)

    def action_space(self, agent):
        """A field."""
        return spaces.Discrete(self.side * self.side)

    def reset(self, seed=None, options=None):
        """An empty board."""
        self.agents = self.possible_agents[:]
        self.board = np.zeros((2, self.side, self.side), np.float32)
        self.rewards = self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {} for agent in self.agents}
        self.turn = 0
        self.agent_selection = self.agents[0]

    def observe(self, agent):
        """As the agent sees it."""
        me = self.possible_agents.index(agent)
        turn = np.full((1, self.side, self.side), me, np.float32)
        return np.concatenate([self.board[[me, 1 - me]], turn])

    def step(self, action):
        """Put a stone."""
        me = self.turn % 2
        row, column = divmod(int(action), self.side)
        self.board[me, row, column] = 1
        won = self._won(me, row, column)
        self.turn += 1
        if won:
            self.rewards = {a: 1.0 if i == me else -1.0 for i, a in enumerate(self.agents)}
        over = won or self.turn >= self.side * self.side or self.turn >= 60
        self.terminations = dict.fromkeys(self.agents, bool(over))
        self.agent_selection = self.agents[self.turn % 2]

    def _won(self, me, row, column):
        for dr, dc in ((0, 1), (1, 0), (1, 1), (1, -1)):
            count = 1
            for sign in (1, -1):
                r, c = row + sign * dr, column + sign * dc
                while 0 <= r < self.side and 0 <= c < self.side and self.board[me, r, c]:
                    count, r, c = count + 1, r + sign * dr, c + sign * dc
            if count >= 5:
                return True
        return False


class Net(nn.Module):
    """Values of all fields."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, channels, 3, padding=1), nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU(),
            nn.Conv2d(channels, 1, 1), nn.Flatten(),
        )  # fmt: skip

    def forward(self, x):
        """A value for each field."""
        return self.body(x)


def main() -> None:
    """Play and learn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=40)
    parser.add_argument("--side", type=int, default=15)
    parser.add_argument("--memory", type=int, default=30_000)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--channels", type=int, default=48)
    parser.add_argument("--learn-every", type=int, default=20)
    args = parser.parse_args()
    env, net, old = Gomoku(args.side), Net(args.channels), Net(args.channels)
    old.load_state_dict(net.state_dict())
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    memory: deque[tuple[np.ndarray, int, float, np.ndarray, bool]] = deque(maxlen=args.memory)
    turns = 0
    for game in range(args.games):
        env.reset(seed=game)
        before: dict[str, tuple[np.ndarray, int]] = {}
        for agent in env.agent_iter():
            seen, reward, terminated, truncated, _ = env.last()
            if agent in before:
                memory.append((*before.pop(agent), reward, seen, terminated))
            if terminated or truncated:
                if not before:
                    break
                env.agent_selection = next(iter(before))
                continue
            free = np.flatnonzero(env.board.sum(0).ravel() == 0)
            if random.random() < max(0.1, 1 - game / 40):
                action = int(random.choice(free))
            else:
                with torch.no_grad():
                    values = net(torch.from_numpy(seen)[None])[0].numpy()
                action = int(free[values[free].argmax()])
            before[agent] = (seen, action)
            env.step(action)
            turns += 1
            if turns % args.learn_every or len(memory) < 4 * args.batch_size:
                continue
            rows = random.sample(memory, args.batch_size)
            s, a, r, n, d = (np.array(part) for part in zip(*rows, strict=True))
            with torch.no_grad():
                best = old(torch.from_numpy(n)).max(1).values
            y = torch.from_numpy(r).float() - 0.97 * best * (1 - torch.from_numpy(d).float())
            q = net(torch.from_numpy(s)).gather(1, torch.from_numpy(a)[:, None])[:, 0]
            loss = (q - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if game % 20 == 0:
            old.load_state_dict(net.state_dict())


if __name__ == "__main__":
    main()
