"""The training made to fit: rollouts of a fixed length, stored once, learned in minibatches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from memfit.systems.program import Report
from memfit.systems.trader import ppo
from memfit.systems.trader.market import Array, Market
from memfit.systems.trader.portfolio import Portfolios
from memfit.systems.trader.rollout import Collector
from memfit.systems.trader.settings import DECAY, DISCOUNT, EPISODE, Settings

JUDGED = 64  # episodes of the held-out rows by which a policy is judged


class Fitted:
    """Trains one policy; `train` gives one result an iteration. Close it to end its workers."""

    def __init__(
        self,
        settings: Settings,
        market: Market,
        collector: Collector,
        report: Report = lambda stage, share: None,
    ) -> None:
        self.settings = settings
        self.market = market
        self.report = report
        self.collector = collector
        self.buffers = collector.buffers
        torch.set_num_threads(settings.threads)
        self.learner = ppo.Learner(settings)
        self.random = torch.Generator().manual_seed(settings.seed + 1)
        self._views = {
            name: torch.from_numpy(self.buffers[name])
            for name in ("states", "last_states", "actions", "log_probs", "rewards", "ends")
        }
        self._publish()

    def close(self) -> None:
        """End the workers."""
        self.collector.close()

    def train(self) -> Iterator[ppo.Iteration]:
        """Rollout, then update, until all iterations are done."""
        for number in range(1, self.settings.iterations + 1):
            started = time.perf_counter()
            self.report("rollout", 0.0)
            found = self.collector.collect()
            actor_loss, critic_loss = self.update()
            self._publish()
            yield ppo.Iteration(
                number=number,
                mean_return=found.total_return / found.episodes if found.episodes else 0.0,
                episodes=found.episodes,
                cut=found.cut,
                actor_loss=actor_loss,
                critic_loss=critic_loss,
                seconds=time.perf_counter() - started,
            )

    def update(self) -> tuple[float, float]:
        """Gradient steps on minibatches of the rollout; mean losses."""
        settings, views, device = self.settings, self._views, self.settings.device
        states = views["states"].flatten(0, 1)
        with torch.no_grad():
            values = self._values(states).view(views["rewards"].shape)
            advantages = ppo.advantages_of(
                views["rewards"],
                values,
                self._values(views["last_states"]),
                views["ends"],
                DISCOUNT,
                DECAY,
            )
            returns = (advantages + values).flatten()
            advantages = ppo.normalised(advantages).flatten()
        actions, log_probs = views["actions"].flatten(0, 1), views["log_probs"].flatten()
        count, actor, critic, done = len(states), 0.0, 0.0, 0
        for epoch in range(settings.epochs):
            order = torch.randperm(count, generator=self.random)
            for chosen in order.split(settings.batch):
                losses = self.learner.step(
                    *(
                        whole[chosen].to(device)
                        for whole in (states, actions, log_probs, advantages, returns)
                    )
                )
                actor, critic, done = actor + losses[0], critic + losses[1], done + 1
            self.report("update", (epoch + 1) / settings.epochs)
        return actor / done, critic / done

    def _values(self, states: Tensor) -> Tensor:
        """What the critic says, a minibatch at a time."""
        device = self.settings.device
        parts = (self.learner.critic(part.to(device)) for part in states.split(self.settings.batch))
        return torch.cat([part.cpu() for part in parts])

    @torch.no_grad()
    def _publish(self) -> None:
        """Put the actor's weights where workers read them."""
        actor = self.learner.actor
        for number, parameter in enumerate(actor.net.parameters()):
            torch.from_numpy(self.buffers[f"weights.{number}"]).copy_(parameter)
        torch.from_numpy(self.buffers["log_std"]).copy_(actor.log_std)

    def judge(self) -> float:
        """The mean return of the policy's means on held-out prices, in per cent."""
        return mean_return(
            self.market,
            lambda portfolios: np.tanh(self.buffers.means(portfolios.states())),
            lookback=self.settings.lookback,
        )


def mean_return(
    market: Market,
    act: Callable[[Portfolios], Array],
    *,
    lookback: int = 1,
    episodes: int = JUDGED,
    seed: int = 12345,
) -> float:
    """The mean return of a way to act over episodes of the held-out rows, in per cent."""
    portfolios = Portfolios(market, episodes, seed=seed, lookback=lookback, held_out=True)
    total = np.zeros(episodes)
    for _ in range(EPISODE):
        total += portfolios.step(act(portfolios))[0]
    return float(total.mean())
