"""Plain torch trainings: run one by its name, or plan it as `torch_modules:NAME`."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from memfit import TorchRun

SECONDS, STEPS = 4.0, 40


def _mlp() -> tuple[nn.Module, tuple[int, ...]]:
    layers = [nn.Linear(128, 768), nn.ReLU(), nn.Linear(768, 768), nn.ReLU(), nn.Linear(768, 8)]
    return nn.Sequential(*layers), (4096, 128)


def _pixels() -> tuple[nn.Module, tuple[int, ...]]:
    layers = [
        nn.Conv2d(4, 32, 8, stride=4),
        nn.ReLU(),
        nn.Conv2d(32, 64, 4, stride=2),
        nn.ReLU(),
        nn.Conv2d(64, 64, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(3136, 512),
        nn.ReLU(),
        nn.Linear(512, 6),
    ]
    return nn.Sequential(*layers), (256, 4, 84, 84)


def _autoencoder() -> tuple[nn.Module, tuple[int, ...]]:
    layers = [
        nn.Conv1d(6, 16, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.Conv1d(16, 32, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.ConvTranspose1d(32, 16, 5, stride=2, padding=2, output_padding=1),
        nn.ReLU(),
        nn.ConvTranspose1d(16, 6, 5, stride=2, padding=2, output_padding=1),
    ]
    return nn.Sequential(*layers), (1024, 6, 300)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(64, 256, batch_first=True)
        self.head = nn.Linear(256, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states, _ = self.lstm(x)
        actions: torch.Tensor = self.head(states)
        return actions


def _recurrent() -> tuple[nn.Module, tuple[int, ...]]:
    return Recurrent(), (128, 64, 64)


MODULES = {"mlp": _mlp, "pixels": _pixels, "autoencoder": _autoencoder, "recurrent": _recurrent}


def train(name: str) -> None:
    module, shape = MODULES[name]()
    optimizer = torch.optim.Adam(module.parameters())
    until = time.monotonic() + SECONDS
    for _ in range(STEPS):
        x = torch.rand(shape)
        optimizer.zero_grad()
        output = module(x)
        loss = output.sum()
        loss.backward()
        optimizer.step()
        if time.monotonic() > until:
            break


def _planned(name: str) -> TorchRun:
    from memfit import TorchRun

    module, shape = MODULES[name]()
    return TorchRun(module=module, optimizer=torch.optim.Adam(module.parameters()), batch=shape)


def mlp() -> TorchRun:
    return _planned("mlp")


def pixels() -> TorchRun:
    return _planned("pixels")


def autoencoder() -> TorchRun:
    return _planned("autoencoder")


def recurrent() -> TorchRun:
    return _planned("recurrent")


if __name__ == "__main__":
    train(sys.argv[1])
