"""Self-play on a board game: positions of finished games are learned from again and again."""

from collections import deque
from typing import NamedTuple

import numpy as np
import torch
from torch import nn


class Config(NamedTuple):
    """What the run is made of."""

    rows: int = 12
    columns: int = 14
    games: int = 30
    positions: int = 40_000
    batch_size: int = 512
    updates_per_game: int = 2
    channels: int = 32
    blocks: int = 3


class Connect:
    """Five in a line, pieces fall to the bottom."""

    def __init__(self, rows: int, columns: int) -> None:
        self.board = np.zeros((2, rows, columns), np.float32)
        self.filled = np.zeros(columns, int)

    def step(self, action: int) -> tuple[np.ndarray, float, bool]:
        """Play a column, and look at the board from the other side."""
        row = self.filled[action]
        self.board[0, row, action] = 1
        self.filled[action] += 1
        won = self._line(row, action)
        self.board = self.board[::-1].copy()
        full = bool((self.filled == self.board.shape[1]).all())
        return self.board, float(won), won or full

    def _line(self, row: int, column: int) -> bool:
        mine = self.board[0]
        for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
            count = 1
            for sign in (1, -1):
                r, c = row + sign * down, column + sign * right
                while 0 <= r < mine.shape[0] and 0 <= c < mine.shape[1] and mine[r, c]:
                    count, r, c = count + 1, r + sign * down, c + sign * right
            if count >= 5:
                return True
        return False


class Residual(nn.Module):
    """Two convolutions around a short cut."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.one = nn.Conv2d(channels, channels, 3, padding=1)
        self.two = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.two(torch.relu(self.one(x))))


class Net(nn.Module):
    """What to play, and who wins."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        blocks = [Residual(config.channels) for _ in range(config.blocks)]
        self.body = nn.Sequential(
            nn.Conv2d(2, config.channels, 3, padding=1), nn.ReLU(), *blocks, nn.Flatten()
        )
        flat = config.channels * config.rows * config.columns
        self.policy = nn.Linear(flat, config.columns)
        self.value = nn.Sequential(nn.Linear(flat, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        body = self.body(x)
        return self.policy(body), self.value(body).squeeze(-1)


def play(net: Net, config: Config, chance: np.random.Generator) -> list[tuple]:
    """One game against itself."""
    game, moves = Connect(config.rows, config.columns), []
    done, reward = False, 0.0
    while not done:
        board = game.board.copy()
        with torch.no_grad():
            logits, _ = net(torch.from_numpy(board)[None])
        allowed = game.filled < config.rows
        shares = np.where(allowed, np.exp(logits[0].double().numpy()), 0) + 1e-9 * allowed
        shares /= shares.sum()
        action = int(chance.choice(config.columns, p=shares))
        _, reward, done = game.step(action)
        moves.append((board, shares.astype(np.float32)))
    last = len(moves) - 1
    return [(b, s, reward if (last - i) % 2 == 0 else -reward) for i, (b, s) in enumerate(moves)]


def learn(net: Net, optimizer: torch.optim.Optimizer, batch: list[tuple]) -> float:
    """One update on positions drawn at random."""
    boards, shares, values = (
        torch.from_numpy(np.asarray(part, np.float32)) for part in zip(*batch, strict=True)
    )
    logits, guess = net(boards)
    loss = nn.functional.cross_entropy(logits, shares) + (guess - values).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main(config: Config) -> None:
    """Play, remember, learn."""
    chance = np.random.default_rng(1)
    net = Net(config)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    memory: deque[tuple] = deque(maxlen=config.positions)
    losses = []
    for _ in range(config.games):
        memory.extend(play(net, config, chance))
        if len(memory) < config.batch_size:
            continue
        for _ in range(config.updates_per_game):
            places = chance.integers(len(memory), size=config.batch_size)
            losses.append(learn(net, optimizer, [memory[i] for i in places]))


if __name__ == "__main__":
    main(Config())
