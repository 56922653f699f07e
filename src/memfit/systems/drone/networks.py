"""The networks: an autoencoder over the sensor's window, and a head that acts on its code."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from memfit.systems.drone.settings import ACTIONS, CHANNELS, TARGETS

LATENT = 20
WIDTH = 128
LARGEST_GRADIENT = 0.5


def _after(length: int, *strides: int) -> int:
    for stride in strides:
        length = -(-length // stride)
    return length


class Autoencoder(nn.Module):
    """Conv1d 6 -> 16 -> 32 -> 64, a code of 20 numbers, and the way back."""

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window
        short = _after(window, 2, 2, 3)
        self.encoder = nn.Sequential(
            nn.Conv1d(CHANNELS, 16, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv1d(16, 32, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv1d(32, 64, 5, stride=3, padding=2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(64 * short, LATENT),
            nn.Tanh(),
        )
        self.decoder = nn.Sequential(
            nn.Linear(LATENT, 64 * short),
            nn.Unflatten(1, (64, short)),
            nn.ConvTranspose1d(64, 32, 5, stride=3, padding=1),
            nn.ReLU(),
            nn.ConvTranspose1d(32, 16, 5, stride=2, padding=2, output_padding=1),
            nn.ReLU(),
            nn.ConvTranspose1d(16, CHANNELS, 5, stride=2, padding=2, output_padding=1),
        )

    def encode(self, windows: Tensor) -> Tensor:
        """Code of windows of (samples, channels)."""
        code: Tensor = self.encoder(windows.transpose(1, 2))
        return code

    def decode(self, code: Tensor) -> Tensor:
        """Windows as the code remembers them."""
        windows: Tensor = self.decoder(code)
        return windows[:, :, : self.window].transpose(1, 2)


class Head(nn.Module):
    """Actions and a value from a code and the targets."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(LATENT + TARGETS, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh()
        )
        self.action = nn.Linear(WIDTH, ACTIONS)
        self.value = nn.Linear(WIDTH, 1)
        self.log_std = nn.Parameter(torch.full((ACTIONS,), -0.5))

    def forward(self, code: Tensor, targets: Tensor) -> tuple[torch.distributions.Normal, Tensor]:
        body = self.body(torch.cat([code, targets], dim=1))
        std = self.log_std.exp().expand(len(body), -1)
        normal = torch.distributions.Normal(self.action(body), std, validate_args=False)
        return normal, self.value(body)[:, 0]


class Networks(nn.Module):
    """Both, with an optimizer each: what acts must not disturb what remembers."""

    def __init__(self, window: int, learning_rate: float) -> None:
        super().__init__()
        self.memory = Autoencoder(window)
        self.head = Head()
        self.memory_optimizer = torch.optim.Adam(self.memory.parameters(), learning_rate)
        self.head_optimizer = torch.optim.Adam(self.head.parameters(), learning_rate)

    def step(self) -> None:
        """One step of both optimizers along the gradients that are there."""
        for part, optimizer in (
            (self.memory, self.memory_optimizer),
            (self.head, self.head_optimizer),
        ):
            nn.utils.clip_grad_norm_(part.parameters(), LARGEST_GRADIENT)
            optimizer.step()
