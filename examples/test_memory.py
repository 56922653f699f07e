"""Memory as a test: `pytest --memfit test_memory.py`. Without --memfit, the marks do nothing."""

import pytest
from my_game import make_env


@pytest.mark.memfit_limit("50 MiB")
def test_a_hundred_games_fit():
    games = [make_env() for _ in range(100)]
    for game in games:
        game.reset(seed=0)


@pytest.mark.memfit_no_leak(calls=200)
def test_an_episode_keeps_nothing():
    env = make_env()
    env.reset(seed=0)
    ended = False
    while not ended:
        *_, ended, _, _ = env.step(1)
