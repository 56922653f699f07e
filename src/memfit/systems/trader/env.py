"""One portfolio as a Gymnasium environment."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from memfit.systems.trader.market import LARGEST, Array, Market, market_of, synthetic
from memfit.systems.trader.portfolio import DONE, TIME_UP, Portfolios
from memfit.systems.trader.settings import ACTIONS, FEATURES, ROWS


class TraderEnv(gym.Env[Array, Array]):
    """One portfolio. The state has 71 numbers where the lookback is 1."""

    metadata = {"render_modes": []}  # noqa: RUF012 - Gymnasium's own form

    def __init__(
        self,
        market: Market | None = None,
        *,
        lookback: int = 1,
        held_out: bool = False,
        never_done: bool = False,
    ) -> None:
        market = market or market_of(synthetic(ROWS, 0), lookback)
        self._one = Portfolios(market, lookback=lookback, held_out=held_out, never_done=never_done)
        seen = ACTIONS * FEATURES * lookback
        high = np.concatenate([np.ones(1 + ACTIONS), np.full(seen, LARGEST)]).astype(np.float32)
        low = np.concatenate([np.zeros(1 + ACTIONS), np.full(seen, -LARGEST)]).astype(np.float32)
        self._bounds = low, high
        self.observation_space = gym.spaces.Box(low, high, dtype=np.float32)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (ACTIONS,), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self._one.random = np.random.default_rng(seed)
        return np.clip(self._one.reset()[0], *self._bounds), {}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        rewards, ends = self._one.step(np.asarray(action)[None])
        state = np.clip(self._one.states()[0], *self._bounds)
        info = {"value": float(self._one.value[0])}
        return state, float(rewards[0]), bool(ends[0] == DONE), bool(ends[0] == TIME_UP), info
