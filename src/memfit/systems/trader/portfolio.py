"""Portfolios that trade 7 coins, any number of them at once, in plain arrays."""

from __future__ import annotations

import numpy as np

from memfit.systems.trader.market import WARM_UP, Array, Market
from memfit.systems.trader.settings import ACTIONS, EPISODE, FEE

RUIN = 0.1  # of what it began with: a portfolio that has less is done
PERCENT = 100.0  # rewards are in per cent
RUNS, DONE, TIME_UP = 0, 1, 2  # how a step left an episode


class Portfolios:
    """Any number of portfolios, each somewhere else in the same market.

    An action below 0 sells that share of a coin; actions above 0 share out the cash. The reward is
    the change of the logarithm of a portfolio's value, in per cent.
    """

    def __init__(
        self,
        market: Market,
        count: int = 1,
        *,
        seed: int = 0,
        lookback: int = 1,
        held_out: bool = False,
        never_done: bool = False,
    ) -> None:
        self.market = market
        self.count = count
        self.lookback = lookback
        self.never_done = never_done
        self.first = (market.split if held_out else WARM_UP) + lookback - 1
        self.last = (market.rows if held_out else market.split) - 1
        self.random = np.random.default_rng(seed)
        self.cash = np.ones(count)
        self.held = np.zeros((count, ACTIONS))
        self.row = np.full(count, self.first)
        self.age = np.zeros(count, dtype=np.int64)
        self.reset()

    def reset(self, which: Array | None = None) -> Array:
        """Begin new episodes for the marked portfolios, or all; the states of all."""
        chosen = np.ones(self.count, dtype=bool) if which is None else which
        starts = self.random.integers(self.first, self.last - EPISODE + 1, int(chosen.sum()))
        self.row[chosen] = starts
        self.cash[chosen], self.held[chosen], self.age[chosen] = 1.0, 0.0, 0
        return self.states()

    @property
    def value(self) -> Array:
        """What each portfolio is worth, where it began with 1."""
        worth: Array = self.cash + self.held.sum(1)
        return worth

    def states(self) -> Array:
        """Shares of cash and coins, then the features of the last rows, oldest first."""
        value = self.value[:, None]
        rows = self.row[:, None] + np.arange(1 - self.lookback, 1)
        seen = self.market.features[rows].reshape(self.count, -1)
        return np.concatenate([self.cash[:, None] / value, self.held / value, seen], axis=1).astype(
            np.float32
        )

    def step(self, actions: Array) -> tuple[Array, Array]:
        """Trade, then let an hour pass: rewards, and how each episode goes on."""
        before = self.value
        wanted = np.clip(np.asarray(actions, dtype=np.float64), -1, 1)
        sold = np.maximum(-wanted, 0) * self.held
        self.held -= sold
        self.cash += sold.sum(1) * (1 - FEE)
        shares = np.maximum(wanted, 0)
        shares /= np.maximum(shares.sum(1, keepdims=True), 1)
        spent = shares * self.cash[:, None]
        self.held += spent * (1 - FEE)
        self.cash = np.maximum(self.cash - spent.sum(1), 0)
        after = self.row + 1
        if self.never_done:  # the market begins anew where it ends, so that nobody ever says done
            after = np.where(after > self.last, self.first, after)
        self.held *= self.market.prices[after] / self.market.prices[self.row]
        self.row = after
        self.age += 1
        rewards = PERCENT * np.log(self.value / before)
        ends = np.where(self.value < RUIN, DONE, np.where(self.age >= EPISODE, TIME_UP, RUNS))
        if self.never_done:
            ends = np.zeros_like(ends)
        return rewards.astype(np.float32), ends.astype(np.uint8)
