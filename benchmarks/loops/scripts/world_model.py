"""A world model: random play is collected once, then fitted by a DataLoader over epochs."""

import argparse

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--frames", type=int, default=6000)
parser.add_argument("--side", type=int, default=64)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--num-workers", type=int, default=0)
parser.add_argument("--latent", type=int, default=128)


class Frames(Dataset[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]):
    """Pairs of frames that follow each other, with the action between them."""

    def __init__(self, frames: np.ndarray, actions: np.ndarray) -> None:
        self.frames, self.actions = frames, actions

    def __len__(self) -> int:
        return len(self.frames) - 1

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        now = torch.from_numpy(self.frames[index]).float() / 255
        then = torch.from_numpy(self.frames[index + 1]).float() / 255
        return now, torch.tensor(self.actions[index]).float(), then


class WorldModel(nn.Module):
    """Encodes a frame, adds an action, decodes the next frame."""

    def __init__(self, latent: int, side: int) -> None:
        super().__init__()
        self.small = side // 8
        self.encoder = nn.Sequential(
            nn.Conv2d(3, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 4, 2, 1), nn.ReLU(),
            nn.Conv2d(32, 64, 4, 2, 1), nn.ReLU(), nn.Flatten(),
            nn.Linear(64 * self.small**2, latent),
        )  # fmt: skip
        self.dynamics = nn.Sequential(nn.Linear(latent + 1, 512), nn.ReLU())
        self.lift = nn.Linear(512, 64 * self.small**2)
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ReLU(),
            nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.ReLU(),
            nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, frame: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
        code = torch.cat([self.encoder(frame), action[:, None]], 1)
        lifted = self.lift(self.dynamics(code)).view(-1, 64, self.small, self.small)
        picture: torch.Tensor = self.decoder(lifted)
        return picture


def collect(count: int, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Play at random; the pole is drawn by hand, since no display may be there."""
    env = gym.make("CartPole-v1")
    frames = np.zeros((count, 3, side, side), np.uint8)
    actions = np.zeros(count, np.int64)
    state, _ = env.reset(seed=0)
    for index in range(count):
        x = int((state[0] + 2.4) / 4.8 * (side - 8)) % (side - 8)
        tilt = int(np.clip(state[2] * side, -4, 4))
        frames[index, 0, side - 8 : side - 4, x : x + 8] = 200
        frames[index, 1, side // 2 : side - 8, max(0, x + 4 + tilt)] = 255
        actions[index] = env.action_space.sample()
        state, _, terminated, truncated, _ = env.step(actions[index])
        if terminated or truncated:
            state, _ = env.reset()
    env.close()
    return frames, actions


def main() -> None:
    """Collect, then fit."""
    args = parser.parse_args()
    frames, actions = collect(args.frames, args.side)
    loader = DataLoader(
        Frames(frames, actions), args.batch_size, shuffle=True, num_workers=args.num_workers
    )
    model = WorldModel(args.latent, args.side)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        total = 0.0
        for now, action, then in loader:
            loss = nn.functional.mse_loss(model(now, action), then)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
