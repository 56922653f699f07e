"""What both trainings compute: one place for the losses and their constants."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

DISCOUNT = 0.97
DECAY = 0.95
CLIP = 0.2
VALUE_WEIGHT = 0.5
ENTROPY_WEIGHT = 0.002


@dataclass(frozen=True, kw_only=True)
class Iteration:
    """How one iteration of a training went."""

    number: int
    mean_return: float
    rl_loss: float
    memory_loss: float
    seconds: float
    minibatches: int


def rl_loss(
    actor: torch.distributions.Normal,
    values: Tensor,
    actions: Tensor,
    old_log_probs: Tensor,
    advantages: Tensor,
    returns: Tensor,
) -> Tensor:
    """PPO's clipped loss with value and entropy terms."""
    log_probs = actor.log_prob(actions).sum(1)
    ratio = (log_probs - old_log_probs).exp()
    clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
    policy = -torch.minimum(ratio * advantages, clipped * advantages).mean()
    value = (values - returns).square().mean()
    entropy = actor.entropy().sum(1).mean()
    loss: Tensor = policy + VALUE_WEIGHT * value - ENTROPY_WEIGHT * entropy
    return loss


def memory_loss(rebuilt: Tensor, windows: Tensor) -> Tensor:
    """How badly windows are remembered."""
    return torch.nn.functional.l1_loss(rebuilt, windows)
