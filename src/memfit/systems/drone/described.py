"""The training as two assessments describe it, with the waste they saw and the waste they missed.

Kept on purpose: a history beside observations that contain it (which the second assessment had
removed: `--first-fix`), observations cloned into a list and then stacked, a rollout that records
gradients, one update over every step of every agent at once, graphs that are retained, and names
that keep the last one alive while the next one is built.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch
from torch import Tensor

from memfit.errors import UsageError
from memfit.systems.drone import ppo
from memfit.systems.drone.flight import Flight
from memfit.systems.drone.networks import Networks
from memfit.systems.drone.settings import CHANNELS, EPISODE, TARGETS, Settings
from memfit.systems.program import Report


class DescribedEnv:
    """All drones, with their whole history in every observation."""

    def __init__(self, settings: Settings, flight: Flight) -> None:
        agents, device = settings.agents, flight.device
        self.settings = settings
        self.flight = flight
        self.imu_history: Tensor | None = None
        if not settings.first_fix:
            self.imu_history = torch.zeros(agents, settings.window, CHANNELS, device=device)
        self.observations = torch.zeros(agents, settings.observation, device=device)
        self.pos_history = torch.zeros(agents, EPISODE, 3, device=device)
        self.step_count = 0

    def reset(self) -> Tensor:
        self.flight.reset()
        if self.imu_history is not None:
            self.imu_history.zero_()
        self.observations.zero_()
        self.step_count = 0
        return self._observe()

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        settings = self.settings
        fresh = torch.empty(settings.agents, settings.fresh, CHANNELS, device=self.flight.device)
        rewards = torch.empty(settings.agents, device=self.flight.device)
        self.flight.advance(actions, fresh, rewards, settings.every)
        if self.imu_history is not None:
            self.imu_history = torch.cat([self.imu_history[:, settings.fresh :], fresh], dim=1)
        else:  # the window slides within the observations
            windows = self.observations[:, :-TARGETS]
            kept = windows[:, settings.fresh * CHANNELS :]
            windows.copy_(torch.cat([kept, fresh.flatten(1)], dim=1))
        self.pos_history[:, self.step_count] = self.flight.position
        self.step_count += 1
        return self._observe(), rewards

    def _observe(self) -> Tensor:
        if self.imu_history is not None:
            self.observations[:, :-TARGETS] = self.imu_history.flatten(1)
        self.flight.targets(self.observations[:, -TARGETS:])
        return self.observations


class Described:
    """Trains all drones; `train` gives one result an iteration."""

    def __init__(self, settings: Settings, report: Report = lambda stage, share: None) -> None:
        if settings.storage != "float32":
            raise UsageError(
                f"--as-described stores float32, not {settings.storage}: leave out --storage"
            )
        torch.manual_seed(settings.seed)
        self.settings = settings
        self.report = report
        self.flight = Flight(settings.agents, seed=settings.seed, device=settings.device)
        self.env = DescribedEnv(settings, self.flight)
        self.networks = Networks(settings.window, settings.learning_rate).to(settings.device)

    @property
    def paths(self) -> Tensor:
        """The flown paths of the first drones."""
        return self.env.pos_history[: self.settings.paths].cpu()

    def forward(self, observations: Tensor) -> tuple[torch.distributions.Normal, Tensor, Tensor]:
        """Everything the networks say of observations, whether it is needed or not."""
        windows = observations[:, :-TARGETS].unflatten(1, (-1, CHANNELS))
        code = self.networks.memory.encode(windows)
        actor, values = self.networks.head(code, observations[:, -TARGETS:])
        return actor, values, self.networks.memory.decode(code)

    def train(self) -> Iterator[ppo.Iteration]:
        """Rollout, then one update on all of it, until all iterations are done."""
        for number in range(1, self.settings.iterations + 1):
            started = time.perf_counter()
            states, actions, log_probs, values, rewards = [], [], [], [], []
            observation = self.env.reset()
            for step in range(EPISODE):
                actor, value, _ = self.forward(observation)
                action = actor.sample()
                states.append(observation.clone())
                actions.append(action)
                log_probs.append(actor.log_prob(action).sum(1))
                values.append(value)
                observation, reward = self.env.step(action)
                rewards.append(reward)
                self.report("rollout", (step + 1) / EPISODE)
            _, last, _ = self.forward(observation)
            advantages, returns = advantages_of(rewards, values, last)
            batch = torch.stack(states).flatten(0, 1)
            actor, new_values, rebuilt = self.forward(batch)
            memory_loss = ppo.memory_loss(rebuilt, batch[:, :-TARGETS].unflatten(1, (-1, CHANNELS)))
            rl_loss = ppo.rl_loss(
                actor,
                new_values,
                torch.stack(actions).flatten(0, 1),
                torch.stack(log_probs).flatten().detach(),
                advantages.flatten(),
                returns.flatten(),
            )
            self.networks.zero_grad()
            memory_loss.backward(retain_graph=True)
            rl_loss.backward(retain_graph=True)
            self.networks.step()
            self.report("update", 1.0)
            yield ppo.Iteration(
                number=number,
                mean_return=float(torch.stack(rewards).sum(0).mean()),
                rl_loss=float(rl_loss.detach()),
                memory_loss=float(memory_loss.detach()),
                seconds=time.perf_counter() - started,
                minibatches=1,
            )


def advantages_of(
    rewards: list[Tensor], values: list[Tensor], last: Tensor
) -> tuple[Tensor, Tensor]:
    """Generalised advantages, normalised, and returns; (steps, agents) each."""
    advantages = []
    following, advantage = last.detach(), torch.zeros_like(last)
    for reward, recorded in zip(reversed(rewards), reversed(values), strict=True):
        value = recorded.detach()
        error = reward + ppo.DISCOUNT * following - value
        advantage = error + ppo.DISCOUNT * ppo.DECAY * advantage
        advantages.append(advantage.detach())
        following = value
    stacked = torch.stack(advantages[::-1])
    returns = stacked + torch.stack(values).detach()
    return (stacked - stacked.mean()) / (stacked.std() + 1e-8), returns
