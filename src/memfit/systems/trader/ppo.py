"""What both trainings compute: advantages, losses, and one place for their constants."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from memfit.systems.trader.networks import Actor, Critic
from memfit.systems.trader.portfolio import RUNS, TIME_UP
from memfit.systems.trader.settings import Settings

CLIP = 0.2
ENTROPY_WEIGHT = 0.002
LARGEST_GRADIENT = 1.0


@dataclass(frozen=True, kw_only=True)
class Iteration:
    """How one iteration of a training went."""

    number: int
    mean_return: float  # of the episodes that ended in it, in per cent
    episodes: int
    cut: int  # episodes that never said done and were ended
    actor_loss: float
    critic_loss: float
    seconds: float


def advantages_of(
    rewards: Tensor,
    values: Tensor,
    last_values: Tensor,
    ends: Tensor,
    discount: float,
    decay: float,
) -> Tensor:
    """Generalised advantages of (steps, portfolios).

    After a step that ended an episode nothing follows. Where only its time was up, more would have
    followed: the value of the state it was in stands for what.
    """
    advantages = torch.empty_like(rewards)
    following, advantage = last_values, torch.zeros_like(last_values)
    for step in reversed(range(len(rewards))):
        value, end = values[step], ends[step]
        runs = (end == RUNS).to(rewards.dtype)
        up = (end >= TIME_UP).to(rewards.dtype)
        error = rewards[step] + discount * (runs * following + up * value) - value
        advantage = error + discount * decay * runs * advantage
        advantages[step] = advantage
        following = value
    return advantages


class Learner:
    """Both networks with an optimizer each, and one step along their losses."""

    def __init__(self, settings: Settings) -> None:
        torch.manual_seed(settings.seed)
        self.actor = Actor(settings.state, settings.width).to(settings.device)
        self.critic = Critic(settings.state, settings.width).to(settings.device)
        rate = settings.learning_rate
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), rate)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), rate)

    def step(
        self,
        states: Tensor,
        actions: Tensor,
        log_probs: Tensor,
        advantages: Tensor,
        returns: Tensor,
    ) -> tuple[float, float]:
        """One step of each optimizer; the two losses."""
        critic_loss = nn.functional.smooth_l1_loss(self.critic(states), returns)
        _descend(self.critic, self.critic_optimizer, critic_loss)
        ratio = (self.actor.log_prob(states, actions) - log_probs).exp()
        clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
        gain = torch.minimum(ratio * advantages, clipped * advantages).mean()
        actor_loss = -gain - ENTROPY_WEIGHT * self.actor.entropy()
        _descend(self.actor, self.actor_optimizer, actor_loss)
        return float(actor_loss.detach()), float(critic_loss.detach())


def _descend(network: nn.Module, optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(network.parameters(), LARGEST_GRADIENT)
    optimizer.step()


def normalised(advantages: Tensor) -> Tensor:
    """Advantages with mean 0 and spread 1."""
    if advantages.numel() < 2:
        return advantages - advantages.mean()
    return (advantages - advantages.mean()) / (advantages.std() + 1e-5)
