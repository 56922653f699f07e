"""Portfolios trade what they have, pay their fees, and their episodes end."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from memfit.systems.trader.env import TraderEnv
from memfit.systems.trader.market import Market, market_of, synthetic
from memfit.systems.trader.portfolio import DONE, RUNS, TIME_UP, Portfolios
from memfit.systems.trader.settings import ACTIONS, EPISODE, FEE

MARKET = market_of(synthetic(1200, 0), 3)
FLAT = market_of(np.ones((1200, ACTIONS)))


@pytest.mark.parametrize(("lookback", "numbers"), [(1, 71), (3, 197)])
def test_one_portfolio_passes_the_env_checker(lookback: int, numbers: int) -> None:
    env = TraderEnv(MARKET, lookback=lookback)
    assert env.observation_space.shape == (numbers,)
    assert env.action_space.shape == (7,)
    check_env(env, skip_render_check=True)


def test_the_synthetic_market_is_there_without_being_asked_for() -> None:
    env = TraderEnv()
    first, _ = env.reset(seed=5)
    again, _ = env.reset(seed=5)
    assert (first == again).all()


def test_an_episode_ends_by_its_time() -> None:
    env = TraderEnv(MARKET)
    env.reset(seed=0)
    for step in range(1, EPISODE + 1):
        *_, terminated, truncated, _ = env.step(env.action_space.sample())
        assert not terminated
        assert truncated == (step == EPISODE)


def test_ruin_ends_an_episode() -> None:
    falling = np.exp(np.linspace(0, -40, 1200))[:, None] * np.ones(ACTIONS)
    portfolios = Portfolios(market_of(falling), 1)
    ends = [int(portfolios.step(np.ones((1, ACTIONS)))[1][0]) for _ in range(100)]
    assert ends[0] == RUNS and DONE in ends


@given(
    actions=st.lists(
        arrays(np.float32, (4, ACTIONS), elements=st.floats(-2, 2, width=32)), max_size=6
    )
)
def test_only_fees_are_lost_where_prices_stand_still(actions: list[np.ndarray]) -> None:
    portfolios = Portfolios(FLAT, 4)
    for action in actions:
        before, held = portfolios.value, portfolios.held.copy()
        cash = portfolios.cash.copy()
        rewards, _ = portfolios.step(action)
        assert (portfolios.cash >= 0).all() and (portfolios.held >= 0).all()
        wanted = np.clip(action.astype(np.float64), -1, 1)
        sold = (np.maximum(-wanted, 0) * held).sum(1)
        shares = np.maximum(wanted, 0).sum(1)
        bought = np.minimum(shares, 1) * (cash + sold * (1 - FEE))
        np.testing.assert_allclose(portfolios.value, before - FEE * (sold + bought), rtol=1e-9)
        np.testing.assert_allclose(
            rewards, 100 * np.log(portfolios.value / before), rtol=1e-4, atol=1e-6
        )


def test_what_is_held_moves_with_its_price() -> None:
    portfolios = Portfolios(MARKET, 1, seed=1)
    row = int(portfolios.row[0])
    action = np.zeros((1, ACTIONS))
    action[0, 2] = 1
    portfolios.step(action)
    change = MARKET.prices[row + 1, 2] / MARKET.prices[row, 2]
    assert portfolios.held[0, 2] == pytest.approx((1 - FEE) * change)
    assert portfolios.cash[0] == pytest.approx(0)


def test_the_lookback_shows_the_last_rows_oldest_first() -> None:
    portfolios = Portfolios(MARKET, 1, lookback=3, seed=2)
    row = int(portfolios.row[0])
    seen = portfolios.states()[0, 1 + ACTIONS :].reshape(3, -1)
    assert (seen == MARKET.features[row - 2 : row + 1]).all()


def test_held_out_rows_are_not_trained_on() -> None:
    training, judging = Portfolios(MARKET, 300), Portfolios(MARKET, 300, held_out=True)
    for _ in range(EPISODE):
        training.step(np.zeros((300, ACTIONS)))
        judging.step(np.zeros((300, ACTIONS)))
    assert training.row.max() < MARKET.split <= judging.row.min() - EPISODE


def test_an_env_that_never_says_done_goes_round_its_market() -> None:
    portfolios = Portfolios(MARKET, 2, never_done=True)
    steps = 3 * MARKET.rows
    ends = {int(e) for _ in range(steps) for e in portfolios.step(np.zeros((2, ACTIONS)))[1]}
    assert ends == {RUNS}
    assert (portfolios.age == steps).all()
    assert TIME_UP not in ends


def test_a_market_is_not_changed_by_trading() -> None:
    before = Market(prices=MARKET.prices.copy(), features=MARKET.features.copy(), split=0)
    portfolios = Portfolios(MARKET, 3)
    for _ in range(20):
        portfolios.step(np.random.default_rng(0).uniform(-1, 1, (3, ACTIONS)))
    assert (before.prices == MARKET.prices).all() and (before.features == MARKET.features).all()
