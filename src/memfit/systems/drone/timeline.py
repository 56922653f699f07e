"""A rollout in which each sensor sample is stored once; windows are views into it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from memfit.systems.drone.settings import ACTIONS, CHANNELS, EPISODE, TARGETS, Settings


@dataclass(frozen=True, kw_only=True)
class Minibatch:
    """What one gradient step is computed on."""

    windows: Tensor
    targets: Tensor
    actions: Tensor
    log_probs: Tensor
    advantages: Tensor
    returns: Tensor


class Timeline:
    """One episode of every agent, kept in full, with each sample in it once.

    `samples` begins with the window that an episode starts with, then come the steps' samples; the
    observation of step t is the window that ends where step t begins.
    """

    def __init__(self, settings: Settings, scale: Tensor) -> None:
        self.settings = settings
        self.scale = scale
        agents, device = settings.agents, scale.device
        length = settings.window + EPISODE * settings.fresh
        storage = getattr(torch, settings.storage)
        self.samples = torch.zeros(agents, length, CHANNELS, dtype=storage, device=device)
        self.targets = torch.zeros(agents, EPISODE, TARGETS, device=device)
        self.actions = torch.zeros(agents, EPISODE, ACTIONS, device=device)
        self.log_probs = torch.zeros(agents, EPISODE, device=device)
        # Rewards become returns and values become advantages, in place: see `finish`.
        self.rewards = torch.zeros(agents, EPISODE, device=device)
        self.values = torch.zeros(agents, EPISODE, device=device)

    def begin(self) -> None:
        """A new episode: sensors have been silent until now."""
        self.samples[:, : self.settings.window].zero_()

    def fresh(self, step: int) -> Tensor:
        """Where the samples of a step belong."""
        first = self.settings.window + step * self.settings.fresh
        return self.samples[:, first : first + self.settings.fresh]

    def windows(self, step: int) -> Tensor:
        """What every agent has seen before a step: a view, nothing is copied."""
        first = step * self.settings.fresh
        return self.samples[:, first : first + self.settings.window]

    def as_input(self, windows: Tensor) -> Tensor:
        """Windows as a network takes them, whatever they are stored in."""
        if windows.is_floating_point():
            return windows.float()
        return windows.float().mul_(self.scale)

    def finish(self, last_values: Tensor, discount: float, decay: float) -> None:
        """Generalised advantages, normalised; returns. Both where rewards and values were."""
        following, advantage = last_values, torch.zeros_like(last_values)
        for step in reversed(range(EPISODE)):
            value = self.values[:, step].clone()
            error = self.rewards[:, step] + discount * following - value
            advantage = error + discount * decay * advantage
            self.rewards[:, step] = advantage + value
            self.values[:, step] = advantage
            following = value
        self.values -= self.values.mean()
        self.values /= self.values.std() + 1e-8

    def gather(self, agents: Tensor, steps: Tensor) -> Minibatch:
        """The samples of (agent, step) pairs, copied straight from the timeline."""
        views = self.samples.unfold(1, self.settings.window, self.settings.fresh)
        windows = views[agents, steps].transpose(1, 2)
        return Minibatch(
            windows=self.as_input(windows),
            targets=self.targets[agents, steps],
            actions=self.actions[agents, steps],
            log_probs=self.log_probs[agents, steps],
            advantages=self.values[agents, steps],
            returns=self.rewards[agents, steps],
        )

    def minibatches(self, random: torch.Generator) -> Iterator[Minibatch]:
        """Every (agent, step) pair once, in random order, without a list of all pairs.

        Agents come in one random order, each from a step of its own onwards: the pairs of a
        minibatch follow by arithmetic, so that an order costs bytes an agent and not bytes a pair.
        """
        for agents, steps in self.order(random):
            yield self.gather(agents, steps)

    def order(self, random: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
        """The pairs of each minibatch; where drones act only now and then, those steps alone."""
        settings = self.settings
        agents, size, stride = settings.agents, settings.minibatch, settings.act_every
        device, acts = self.samples.device, EPISODE // stride
        order = torch.randperm(agents, generator=random, device=device, dtype=torch.int32)
        shift = torch.randint(
            0, acts, (agents,), generator=random, device=device, dtype=torch.int32
        )
        for first in range(0, agents * acts, size):
            pairs = torch.arange(first, min(first + size, agents * acts), device=device)
            chosen = order[pairs % agents].long()
            yield chosen, (pairs // agents + shift[chosen]) % acts * stride
