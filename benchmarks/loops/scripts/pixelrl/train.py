"""The loop of the package: a dueling network and a replay of uint8 pictures."""

import argparse

import numpy as np
import torch
from torch import nn

from pixelrl.world import World


class Dueling(nn.Module):
    """Value and advantage of pictures."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 32, 5, stride=3), nn.ReLU(), nn.Conv2d(32, 32, 3, stride=2), nn.ReLU(),
            nn.Flatten(),
        )  # fmt: skip
        size = self.features(torch.zeros(1, 3, side, side)).shape[1]
        self.value, self.advantage = nn.Linear(size, 1), nn.Linear(size, 5)

    def forward(self, picture: torch.Tensor) -> torch.Tensor:
        hidden = self.features(picture.float() / 255)
        advantage = self.advantage(hidden)
        values: torch.Tensor = self.value(hidden) + advantage - advantage.mean(1, keepdim=True)
        return values


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(prog="pixelrl", description=__doc__)
    parser.add_argument("--replay-size", type=int, default=30_000)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--steps", type=int, default=16_000)
    parser.add_argument("--warmup", type=int, default=4_000)
    args = parser.parse_args()
    env = World(args.side)
    online, target = Dueling(args.side), Dueling(args.side)
    optimizer = torch.optim.Adam(online.parameters(), lr=1e-4)
    pictures = torch.empty((args.replay_size, 3, args.side, args.side), dtype=torch.uint8)
    actions = torch.zeros(args.replay_size, dtype=torch.int64)
    rewards = torch.zeros(args.replay_size)
    picture, _ = env.reset(seed=1)
    for step in range(args.steps):
        action = np.random.randint(5)
        following, reward, terminated, _, _ = env.step(action)
        at = step % args.replay_size
        pictures[at] = torch.from_numpy(picture)
        actions[at], rewards[at] = action, reward
        picture = env.reset()[0] if terminated else following
        if step >= args.warmup and step % 200 == 0:
            rows = torch.randint(0, min(step, args.replay_size) - 1, (args.batch_size,))
            with torch.no_grad():
                wanted = rewards[rows] + 0.99 * target(pictures[rows + 1]).max(1).values
            chosen = online(pictures[rows]).gather(1, actions[rows, None]).squeeze(1)
            loss = nn.functional.smooth_l1_loss(chosen, wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 2000 == 0:
                target.load_state_dict(online.state_dict())
                print(f"step {step}: loss {loss.item():.4f}")
