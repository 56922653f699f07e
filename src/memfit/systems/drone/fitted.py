"""The training made to fit: nothing is stored twice, and nothing grows with the whole batch."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import torch
from torch import Tensor

from memfit.systems.drone import ppo
from memfit.systems.drone.flight import Flight, blocks
from memfit.systems.drone.networks import Networks
from memfit.systems.drone.settings import EPISODE, Settings, check_storage
from memfit.systems.drone.timeline import Minibatch, Timeline
from memfit.systems.program import Report

# So many drones are asked for an action at once.
ACTING = 2048


class Fitted:
    """Trains all drones; `train` gives one result an iteration."""

    def __init__(self, settings: Settings, report: Report = lambda stage, share: None) -> None:
        check_storage(settings.storage)
        torch.manual_seed(settings.seed)
        self.settings = settings
        self.report = report
        self.flight = Flight(settings.agents, seed=settings.seed, device=settings.device)
        self.networks = Networks(settings.window, settings.learning_rate).to(settings.device)
        self.timeline = Timeline(settings, self.flight.scale)
        self.random = torch.Generator(settings.device).manual_seed(settings.seed + 1)
        self.paths = torch.zeros(min(settings.paths, settings.agents), EPISODE, 3)

    def train(self) -> Iterator[ppo.Iteration]:
        """Rollout, then update, until all iterations are done."""
        for number in range(1, self.settings.iterations + 1):
            started = time.perf_counter()
            mean_return = self.rollout()
            rl, memory, count = self.update()
            yield ppo.Iteration(
                number=number,
                mean_return=mean_return,
                rl_loss=rl,
                memory_loss=memory,
                seconds=time.perf_counter() - started,
                minibatches=count,
            )

    @torch.no_grad()
    def rollout(self) -> float:
        """Fly one episode; its mean return."""
        timeline, flight = self.timeline, self.flight
        flight.reset()
        timeline.begin()
        for step in range(EPISODE):
            flight.targets(timeline.targets[:, step])
            if step % self.settings.act_every == 0:
                self._act(step)
            else:
                self._act_again(step)
            flight.advance(
                timeline.actions[:, step],
                timeline.fresh(step),
                timeline.rewards[:, step],
                self.settings.every,
            )
            self.paths[:, step] = flight.position[: len(self.paths)].cpu()
            self.report("rollout", (step + 1) / EPISODE)
        mean_return = float(timeline.rewards.mean()) * EPISODE
        timeline.finish(self._last_values(), ppo.DISCOUNT, ppo.DECAY)
        return mean_return

    def _act(self, step: int) -> None:
        timeline = self.timeline
        for block in blocks(self.settings.agents, ACTING):
            windows = timeline.as_input(timeline.windows(step)[block])
            code = self.networks.memory.encode(windows)
            actor, values = self.networks.head(code, timeline.targets[block, step])
            actions = actor.mean + actor.stddev * torch.empty_like(actor.mean).normal_(
                generator=self.random
            )
            timeline.actions[block, step] = actions
            timeline.log_probs[block, step] = actor.log_prob(actions).sum(1)
            timeline.values[block, step] = values

    def _act_again(self, step: int) -> None:
        """The last action goes on; what it was worth is taken as unchanged."""
        for kept in (self.timeline.actions, self.timeline.log_probs, self.timeline.values):
            kept[:, step] = kept[:, step - 1]

    def _last_values(self) -> Tensor:
        """What the drones still expect where the episode is cut off."""
        values = torch.empty(self.settings.agents, device=self.flight.device)
        targets = torch.empty(self.settings.agents, 4, device=self.flight.device)
        self.flight.targets(targets)
        for block in blocks(self.settings.agents, ACTING):
            windows = self.timeline.as_input(self.timeline.windows(EPISODE)[block])
            code = self.networks.memory.encode(windows)
            values[block] = self.networks.head(code, targets[block])[1]
        return values

    def update(self) -> tuple[float, float, int]:
        """Gradient steps on minibatches; mean losses, and how many there were."""
        size, epochs = self.settings.minibatch, self.settings.epochs
        pairs = self.settings.agents * EPISODE // self.settings.act_every
        most = epochs * -(-pairs // size)
        most = min(most, self.settings.max_minibatches or most)
        every = (self.timeline.minibatches(self.random) for _ in range(epochs))
        chosen = itertools.islice(itertools.chain.from_iterable(every), most)
        rl = memory = 0.0
        for done, minibatch in enumerate(chosen, 1):
            losses = self._step(minibatch)
            rl, memory = rl + losses[0], memory + losses[1]
            self.report("update", done / most)
        return rl / most, memory / most, most

    def _step(self, batch: Minibatch) -> tuple[float, float]:
        networks = self.networks
        code = networks.memory.encode(batch.windows)
        memory = ppo.memory_loss(networks.memory.decode(code), batch.windows)
        actor, values = networks.head(code, batch.targets)
        rl = ppo.rl_loss(
            actor, values, batch.actions, batch.log_probs, batch.advantages, batch.returns
        )
        networks.zero_grad(set_to_none=True)
        # One pass over one graph gives both optimizers what two passes would.
        (memory + rl).backward()
        networks.step()
        return float(rl.detach()), float(memory.detach())
