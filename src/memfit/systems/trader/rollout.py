"""Rollouts made to fit: one set of buffers in shared memory, filled by forked workers.

A worker acts with plain arrays and never needs torch. It is forked before the training loads that,
while the process is still small, and writes its transitions where the update reads them: nothing is
stored twice and nothing is sent.
"""

from __future__ import annotations

import gc
import math
import mmap
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from memfit.dropins import trim
from memfit.systems.trader.market import Array, Market
from memfit.systems.trader.portfolio import RUNS, TIME_UP, Portfolios
from memfit.systems.trader.settings import ACTIONS, Settings
from memfit.systems.trader.workers import Workers


class Buffers:
    """One rollout of all portfolios, and the actor's weights as workers read them."""

    def __init__(self, settings: Settings) -> None:
        steps, count, state = settings.horizon, settings.portfolios, settings.state
        shapes: dict[str, tuple[int, ...]] = {
            "states": (steps, count, state),
            "last_states": (count, state),
            "actions": (steps, count, ACTIONS),
            "log_probs": (steps, count),
            "rewards": (steps, count),
            "ends": (steps, count),
            "log_std": (ACTIONS,),
        }
        sizes = (state, settings.width, settings.width, ACTIONS)
        for layer, (inputs, outputs) in enumerate(pairwise(sizes)):
            shapes[f"weights.{2 * layer}"] = (outputs, inputs)
            shapes[f"weights.{2 * layer + 1}"] = (outputs,)
        self.bytes = 0
        self._arrays: dict[str, Array] = {}
        for name, shape in shapes.items():
            kind = np.dtype(np.uint8 if name == "ends" else np.float32)
            size = math.prod(shape) * kind.itemsize
            # Shared with the workers by being inherited: it goes with the processes.
            self._arrays[name] = np.frombuffer(mmap.mmap(-1, size), kind).reshape(shape)
            self.bytes += size

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def means(self, states: Array) -> Array:
        """The actor's means, as its torch module computes them."""
        hidden = np.maximum(states @ self["weights.0"].T + self["weights.1"], 0)
        hidden = np.maximum(hidden @ self["weights.2"].T + self["weights.3"], 0)
        means: Array = hidden @ self["weights.4"].T + self["weights.5"]
        return means


class Collected(NamedTuple):
    """The episodes that ended in one rollout."""

    episodes: int = 0
    total_return: float = 0.0
    cut: int = 0


class Block:
    """The portfolios of one worker, which fill their columns of the buffers."""

    def __init__(self, settings: Settings, market: Market, buffers: Buffers, number: int) -> None:
        self.settings = settings
        self.buffers = buffers
        self.columns = slice(number * settings.envs, (number + 1) * settings.envs)
        self.portfolios = Portfolios(
            market,
            settings.envs,
            seed=settings.seed * 1000 + number,
            lookback=settings.lookback,
            never_done=settings.never_done,
        )
        self.random = np.random.default_rng((settings.seed, number, 1))
        self.returns = np.zeros(settings.envs)

    def collect(self) -> Collected:
        """Fill the columns with one rollout. It has so many steps, whatever the env says."""
        buffers, columns, portfolios = self.buffers, self.columns, self.portfolios
        std = np.exp(buffers["log_std"])
        constant = float(buffers["log_std"].sum()) + ACTIONS * math.log(2 * math.pi) / 2
        found = Collected()
        states = portfolios.states()
        for step in range(self.settings.horizon):
            noise = self.random.standard_normal((self.settings.envs, ACTIONS), dtype=np.float32)
            actions = buffers.means(states) + std * noise
            buffers["states"][step, columns] = states
            buffers["actions"][step, columns] = actions
            buffers["log_probs"][step, columns] = -(np.square(noise).sum(1) / 2 + constant)
            rewards, ends = portfolios.step(np.tanh(actions))
            late = (ends == RUNS) & (portfolios.age >= self.settings.max_episode)
            ends[late] = TIME_UP
            buffers["rewards"][step, columns] = rewards
            buffers["ends"][step, columns] = ends
            self.returns += rewards
            over = ends != RUNS
            if over.any():
                found = Collected(
                    episodes=found.episodes + int(over.sum()),
                    total_return=found.total_return + float(self.returns[over].sum()),
                    cut=found.cut + int(late.sum()),
                )
                self.returns[over] = 0
                portfolios.reset(over)
            states = portfolios.states()
        buffers["last_states"][columns] = states
        return found


class Collector:
    """Fills the buffers, by workers or, where there are none, by itself."""

    def __init__(self, settings: Settings, market: Market) -> None:
        self.buffers = buffers = Buffers(settings)
        self.own = None if settings.workers else Block(settings, market, buffers, 0)
        gc.collect()
        gc.freeze()  # a worker that collects garbage would copy what it shares
        trim()
        try:
            with warnings.catch_warnings():
                # Python warns of forks beside threads. These workers take no lock that a
                # thread of this process might hold: they use plain arrays and a pipe.
                warnings.simplefilter("ignore", DeprecationWarning)
                self.workers = Workers(
                    "fork", settings.workers, _collecting, settings, market, buffers
                )
        finally:
            gc.unfreeze()

    def collect(self) -> Collected:
        """One rollout into the buffers."""
        if self.own is not None:
            return self.own.collect()
        return Collected(*map(sum, zip(*self.workers.ask("collect"), strict=True)))

    def close(self) -> None:
        """End all workers, and wait until they are gone."""
        self.workers.close()


def _collecting(
    settings: Settings, market: Market, buffers: Buffers, number: int
) -> Callable[[str], Collected]:
    """What a worker does: one rollout whenever it is asked for."""
    block = Block(settings, market, buffers, number)
    return lambda _: block.collect()
