"""The actor and the critic: two hidden layers of one width each."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from memfit.systems.trader.settings import ACTIONS

FIRST_LOG_STD = -0.5


def _layers(inputs: int, width: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, outputs),
    )


class Actor(nn.Module):
    """Means of a normal distribution over actions before tanh; their spread is learned too."""

    def __init__(self, state: int, width: int) -> None:
        super().__init__()
        self.net = _layers(state, width, ACTIONS)
        self.log_std = nn.Parameter(torch.full((ACTIONS,), FIRST_LOG_STD))
        with torch.no_grad():  # a new actor hardly acts: it explores around doing nothing
            self.net[-1].weight.mul_(0.1)  # type: ignore[operator]

    def forward(self, states: Tensor) -> Tensor:
        means: Tensor = self.net(states)
        return means

    def log_prob(self, states: Tensor, actions: Tensor) -> Tensor:
        """How likely these actions, before tanh, are in these states."""
        error = (actions - self(states)) * (-self.log_std).exp()
        constant = ACTIONS * math.log(2 * math.pi) / 2
        log_prob: Tensor = -(error.square().sum(1) / 2 + self.log_std.sum() + constant)
        return log_prob

    def entropy(self) -> Tensor:
        """The spread of its actions, the same in all states."""
        return self.log_std.sum() + ACTIONS * (1 + math.log(2 * math.pi)) / 2


class Critic(nn.Module):
    """What a state is worth."""

    def __init__(self, state: int, width: int) -> None:
        super().__init__()
        self.net = _layers(state, width, 1)

    def forward(self, states: Tensor) -> Tensor:
        values: Tensor = self.net(states)
        return values[:, 0]
