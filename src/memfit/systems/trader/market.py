"""Prices of 7 coins: a synthetic market of our own, or a user's file; and what is seen of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from memfit.errors import UsageError
from memfit.systems.trader.settings import ACTIONS, EPISODE, FEATURES, Settings

Array = np.ndarray[Any, np.dtype[Any]]

WARM_UP = 48  # rows before the first one whose features are complete
LARGEST = 5.0  # features are cut off here
HELD_OUT = 0.2  # the last part of the rows, on which a policy is judged

# Regimes of the synthetic market: drift of an hour, noise of an hour, mean length in hours.
_REGIMES = ((0.0004, 0.006, 240.0), (-0.0005, 0.010, 160.0), (0.0, 0.004, 320.0))
_COMMON = 0.6  # correlation of any two coins' noise
_TREND_KEPT = 0.97  # each coin's own trend fades by this factor an hour
_TREND = 0.0025  # its standard deviation, in log price an hour: what an agent can learn


@dataclass(frozen=True, kw_only=True)
class Market:
    """Prices and features by row; rows from `split` on are held out of training."""

    prices: Array  # (rows, coins), float64
    features: Array  # (rows, coins * FEATURES), float32
    split: int

    @property
    def rows(self) -> int:
        return len(self.prices)


def market_for(settings: Settings) -> Market:
    """The market that the settings ask for: a user's file, or the synthetic one."""
    if settings.prices:
        from memfit.systems.trader.price_file import read_prices

        return market_of(read_prices(Path(settings.prices)), settings.lookback)
    return market_of(synthetic(settings.rows, settings.seed), settings.lookback)


def synthetic(rows: int, seed: int) -> Array:
    """Correlated geometric Brownian motion with regimes, and a slow trend of each coin's own.

    The trend is not shown; it can be told from the last hours' returns, as far as the noise allows.
    """
    random = np.random.default_rng(seed)
    drift, noise = np.empty(rows), np.empty(rows)
    row, regime = 0, int(random.integers(len(_REGIMES)))
    while row < rows:
        mean, spread, length = _REGIMES[regime]
        end = min(rows, row + 1 + int(random.exponential(length)))
        drift[row:end], noise[row:end] = mean, spread
        row = end
        regime = (regime + 1 + int(random.integers(len(_REGIMES) - 1))) % len(_REGIMES)
    correlation = np.full((ACTIONS, ACTIONS), _COMMON)
    np.fill_diagonal(correlation, 1.0)
    shocks = random.standard_normal((rows, ACTIONS)) @ np.linalg.cholesky(correlation).T
    pushes = random.standard_normal((rows, ACTIONS)) * _TREND * np.sqrt(1 - _TREND_KEPT**2)
    trend, now = np.empty((rows, ACTIONS)), random.standard_normal(ACTIONS) * _TREND
    for row in range(rows):
        now = _TREND_KEPT * now + pushes[row]
        trend[row] = now
    steps = (drift - noise**2 / 2)[:, None] + trend + shocks * noise[:, None]
    start = np.log(np.geomspace(0.5, 40_000.0, ACTIONS)[::-1])
    prices: Array = np.exp(start + np.cumsum(steps, axis=0))
    return prices


def market_of(prices: Array, lookback: int = 1) -> Market:
    """The market that these prices make, where there are enough rows to train and to judge on."""
    rows = len(prices)
    split = rows - int(rows * HELD_OUT)
    need = rows_needed(lookback)
    if rows < need:
        raise UsageError(
            f"there are {rows} rows of prices: an episode of {EPISODE} steps to train on and one "
            f"to judge on take {need}; give a longer file"
        )
    return Market(prices=prices, features=features_of(prices), split=split)


def rows_needed(lookback: int) -> int:
    """The fewest rows from which both parts, training and held out, have an episode."""
    shortest = EPISODE + 2 + max(0, lookback - 1)
    judge = int(np.ceil(shortest / HELD_OUT))
    train = int(np.ceil((shortest + WARM_UP) / (1 - HELD_OUT)))
    return max(judge, train)


def features_of(prices: Array) -> Array:
    """9 technical features of each coin and row, from that row and earlier ones alone.

    Returns of 1, 6 and 24 rows and the difference of two moving averages in units of the usual
    move, that difference against its own average, relative strength, the place in the band of the
    last 20 rows and in the range of the last 48, and how much moves are larger than usual.
    """
    logs = np.log(prices)
    moves = np.diff(logs, axis=0, prepend=logs[:1])
    usual = np.sqrt(_average(moves**2, 48)) + 1e-8
    fast, slow = _average(logs, 12), _average(logs, 26)
    cross = (fast - slow) / usual
    up, down = _average(np.maximum(moves, 0), 14), _average(np.maximum(-moves, 0), 14)
    strength = (up - down) / (up + down + 1e-12)
    near, far = _windows(logs, 20), _windows(logs, WARM_UP)
    low, high = far.min(-1), far.max(-1)
    columns = (
        moves / usual,
        _change(logs, 6) / usual / np.sqrt(6),
        _change(logs, 24) / usual / np.sqrt(24),
        cross,
        cross - _average(cross, 9),
        2 * strength,
        (logs - near.mean(-1)) / (near.std(-1) + 1e-8),
        2 * (logs - low) / (high - low + 1e-8) - 1,
        np.log((np.sqrt(_average(moves**2, 6)) + 1e-8) / usual),
    )
    assert len(columns) == FEATURES
    stacked = np.stack(columns, axis=2).reshape(len(prices), -1)
    seen: Array = np.clip(stacked, -LARGEST, LARGEST).astype(np.float32)
    return seen


def _average(values: Array, span: int) -> Array:
    """Exponential moving average: what came `span` rows ago hardly counts."""
    weight = 2 / (span + 1)
    averages = np.empty_like(values)
    now = values[0].copy()
    for row, value in enumerate(values):
        now = now + weight * (value - now)
        averages[row] = now
    return averages


def _change(values: Array, rows: int) -> Array:
    changed = np.zeros_like(values)
    changed[rows:] = values[rows:] - values[:-rows]
    return changed


def _windows(values: Array, rows: int) -> Array:
    """The last rows up to each one, as views; the first rows see the first value repeated."""
    padded = np.concatenate([np.repeat(values[:1], rows - 1, axis=0), values])
    return np.lib.stride_tricks.sliding_window_view(padded, rows, axis=0)
