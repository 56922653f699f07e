"""The training as an assessment describes it, with the waste it saw and the waste it missed.

Kept on purpose: workers that each import everything anew, a trajectory as a list of small tensors
that is stacked, pickled, joined and copied, target networks that nobody reads, minibatches as large
as a rollout, and a rollout that ends only where the env says done.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from memfit.systems.program import Report, uninterrupted
from memfit.systems.trader import ppo
from memfit.systems.trader.market import Market
from memfit.systems.trader.networks import Actor
from memfit.systems.trader.portfolio import RUNS, Portfolios
from memfit.systems.trader.settings import DECAY, DISCOUNT, Settings
from memfit.systems.trader.workers import Workers

Stop = Callable[[], None]
SOFT = 0.005  # of the networks that goes into their targets at every update


class Explorer:
    """One env, and the loop that collects from it."""

    def __init__(self, settings: Settings, market: Market, number: int) -> None:
        self.settings = settings
        self.env = Portfolios(
            market,
            1,
            seed=settings.seed * 1000 + number,
            lookback=settings.lookback,
            never_done=settings.never_done,
        )
        self.random = torch.Generator().manual_seed(settings.seed * 1000 + number)

    @torch.no_grad()
    def explore(self, actor: Actor, stop: Stop) -> dict[str, Any]:
        """At least so many steps, and then on to the end of the episode."""
        target = -(-self.settings.steps // max(1, self.settings.workers))
        trajectory: list[tuple[Any, ...]] = []
        states, total, returns = self.env.reset(), 0.0, []
        step, done = 0, False
        while step < target or not done:
            stop()
            state = torch.as_tensor(states, dtype=torch.float32)
            mean = actor(state)
            noise = torch.randn(mean.shape, generator=self.random)
            action = mean + actor.log_std.exp() * noise
            reward, end = self.env.step(torch.tanh(action).numpy())
            done = bool(end[0] != RUNS)
            trajectory.append((state, torch.as_tensor(reward), torch.as_tensor(end), action, noise))
            total += float(reward[0])
            if done:
                returns.append(total)
                total = 0.0
                self.env.reset()
            states = self.env.states()
            step += 1
        columns = [torch.stack(column) for column in zip(*trajectory, strict=True)]
        last = torch.as_tensor(states, dtype=torch.float32)
        return {"columns": columns, "last": last, "returns": returns}


class Described:
    """Trains one policy; `train` gives one result an iteration. Close it to end its workers."""

    def __init__(
        self,
        settings: Settings,
        market: Market,
        report: Report = lambda stage, share: None,
        step: Stop = lambda: None,
        check: Stop = lambda: None,
    ) -> None:
        torch.set_num_threads(settings.threads)
        self.settings = settings
        self.market = market
        self.report = report
        self.step, self.check = step, check  # may raise, to end what does not end
        self.learner = ppo.Learner(settings)
        self.actor_target = copy.deepcopy(self.learner.actor)
        self.critic_target = copy.deepcopy(self.learner.critic)
        self.random = torch.Generator().manual_seed(settings.seed + 1)
        self.own = Explorer(settings, market, 0)
        with uninterrupted() if settings.workers else nullcontext():
            self.workers = Workers("spawn", settings.workers, _exploring, settings, market)

    def close(self) -> None:
        """End all workers, and wait until they are gone."""
        self.workers.close()

    def train(self) -> Iterator[ppo.Iteration]:
        """Rollout, then update, until all iterations are done."""
        for number in range(1, self.settings.iterations + 1):
            started = time.perf_counter()
            self.report("rollout", 0.0)
            trajectories, returns = self.collect()
            actor_loss, critic_loss = self.update(trajectories)
            yield ppo.Iteration(
                number=number,
                mean_return=sum(returns) / len(returns) if returns else 0.0,
                episodes=len(returns),
                cut=0,
                actor_loss=actor_loss,
                critic_loss=critic_loss,
                seconds=time.perf_counter() - started,
            )

    def collect(self) -> tuple[list[dict[str, Any]], list[float]]:
        """One trajectory of each worker, as tensors of this process."""
        if self.settings.workers:
            weights = {n: p.cpu().numpy() for n, p in self.learner.actor.state_dict().items()}
            found = self.workers.ask(weights, self.check)
            for each in found:
                each["columns"] = [torch.from_numpy(column) for column in each["columns"]]
                each["last"] = torch.from_numpy(each["last"])
        else:
            actor = copy.deepcopy(self.learner.actor).cpu()
            found = [self.own.explore(actor, self.step)]
        return found, [value for each in found for value in each["returns"]]

    def update(self, trajectories: list[dict[str, Any]]) -> tuple[float, float]:
        """Gradient steps on samples of the whole trajectory; mean losses."""
        learner, device = self.learner, self.settings.device
        whole = []
        with torch.no_grad():
            for trajectory in trajectories:
                states, rewards, ends, actions, noise = (
                    column.to(device) for column in trajectory["columns"]
                )
                states, actions, noise = states[:, 0], actions[:, 0], noise[:, 0]
                values = learner.critic(states)
                last = learner.critic(trajectory["last"].to(device))
                advantages = ppo.advantages_of(
                    rewards, values[:, None], last, ends, DISCOUNT, DECAY
                )[:, 0]
                log_probs = learner.actor.log_prob(states, actions)
                whole.append((states, actions, log_probs, advantages, advantages + values, noise))
            joined: list[Tensor] = [torch.cat(parts) for parts in zip(*whole, strict=True)]
            states, actions, log_probs, advantages, returns, _ = joined
            advantages = ppo.normalised(advantages)
        batch = min(self.settings.batch, len(states))
        updates = max(1, len(states) * self.settings.epochs // batch)
        actor = critic = 0.0
        for done in range(updates):
            self.check()
            chosen = torch.randint(len(states), (batch,), generator=self.random)
            losses = learner.step(
                states[chosen],
                actions[chosen],
                log_probs[chosen],
                advantages[chosen],
                returns[chosen],
            )
            actor, critic = actor + losses[0], critic + losses[1]
            self._follow()
            self.report("update", (done + 1) / updates)
        return actor / updates, critic / updates

    @torch.no_grad()
    def _follow(self) -> None:
        """Let the targets follow their networks, though PPO never asks them."""
        for target, network in (
            (self.actor_target, self.learner.actor),
            (self.critic_target, self.learner.critic),
        ):
            for mine, theirs in zip(target.parameters(), network.parameters(), strict=True):
                mine.lerp_(theirs, SOFT)

    @torch.no_grad()
    def judge(self) -> float:
        """The mean return of the policy's means on held-out prices, in per cent."""
        from memfit.systems.trader.fitted import mean_return

        actor = copy.deepcopy(self.learner.actor).cpu()
        return mean_return(
            self.market,
            lambda portfolios: actor(torch.from_numpy(portfolios.states())).tanh().numpy(),
            lookback=self.settings.lookback,
        )


def _exploring(
    settings: Settings, market: Market, number: int
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What a worker does: a trajectory whenever it is sent weights, pickled back as arrays."""
    torch.set_num_threads(settings.threads)
    actor = Actor(settings.state, settings.width)
    explorer = Explorer(replace(settings, device="cpu"), market, number)

    def explore(weights: dict[str, Any]) -> dict[str, Any]:
        actor.load_state_dict({n: torch.from_numpy(np.array(w)) for n, w in weights.items()})
        found = explorer.explore(actor, lambda: None)
        found["columns"] = [column.numpy() for column in found["columns"]]
        found["last"] = found["last"].numpy()
        return found

    return explore
