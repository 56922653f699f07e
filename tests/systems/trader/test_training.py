"""Both trainings run and learn, what does not end is ended."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager

import numpy as np
import pytest
import torch

from memfit.systems.trader.described import Described, Explorer
from memfit.systems.trader.fitted import Fitted, mean_return
from memfit.systems.trader.market import market_of, synthetic
from memfit.systems.trader.networks import Actor
from memfit.systems.trader.portfolio import RUNS, TIME_UP
from memfit.systems.trader.rollout import Collector
from memfit.systems.trader.settings import ACTIONS, EPISODE, Settings
from memfit.systems.trader.workers import WorkerDied
from memfit.tracking.side_by_side import tree

MARKET = market_of(synthetic(1200, 0))
SMALL = Settings(width=8, batch=64, threads=1, workers=0, envs=4, steps=256, iterations=2, epochs=2)


@contextmanager
def fitted(**changes: object) -> Iterator[Fitted]:
    from dataclasses import replace

    settings = replace(SMALL, **changes)  # type: ignore[arg-type]
    threads = torch.get_num_threads()
    with closing(Collector(settings, MARKET)) as collector:
        yield Fitted(settings, MARKET, collector)
    torch.set_num_threads(threads)


def parameters(training: Fitted | Described) -> dict[str, torch.Tensor]:
    return {
        f"{kind}.{name}": value.detach().clone()
        for kind, net in (("actor", training.learner.actor), ("critic", training.learner.critic))
        for name, value in net.named_parameters()
    }


@pytest.mark.parametrize("workers", [0, 2])
def test_a_fitted_training_changes_all_its_networks(workers: int) -> None:
    with fitted(workers=workers) as training:
        before = parameters(training)
        results = list(training.train())
        after = parameters(training)
    assert [r.number for r in results] == [1, 2]
    assert all((before[name] != after[name]).any() for name in before)
    assert all(np.isfinite([r.actor_loss, r.critic_loss, r.mean_return]).all() for r in results)


def test_one_seed_is_one_training() -> None:
    def run(seed: int) -> dict[str, torch.Tensor]:
        with fitted(seed=seed, workers=1) as training:
            list(training.train())
            return parameters(training)

    first, again, other = run(1), run(1), run(2)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert any((first[name] != other[name]).any() for name in first)


def test_workers_act_as_the_networks_say() -> None:
    with fitted(workers=2, steps=512) as training:
        training.collector.collect()
        buffers, actor = training.buffers, training.learner.actor
        states = torch.from_numpy(buffers["states"]).flatten(0, 1)
        actions = torch.from_numpy(buffers["actions"]).flatten(0, 1)
        with torch.no_grad():
            means, log_probs = actor(states), actor.log_prob(states, actions)
        torch.testing.assert_close(
            torch.from_numpy(buffers.means(buffers["states"][0])), means[:8], atol=1e-5, rtol=1e-4
        )
        torch.testing.assert_close(
            torch.from_numpy(buffers["log_probs"]).flatten(), log_probs, atol=1e-4, rtol=1e-4
        )
        assert (buffers["states"][:, 0] != buffers["states"][:, 4]).any(), "workers differ"


def test_no_worker_is_left() -> None:
    before = set(tree(os.getpid()))
    with fitted(workers=3, envs=1) as training:
        assert len(set(tree(os.getpid())) - before) == 3
        training.collector.collect()
    assert set(tree(os.getpid())) <= before


def test_a_worker_that_dies_is_an_error_and_not_a_wait() -> None:
    with fitted(workers=2) as training:
        training.collector.workers.all[1][0].kill()
        with pytest.raises(WorkerDied, match="rollout worker 1"):
            training.collector.collect()


def test_episodes_that_do_not_end_are_ended() -> None:
    with fitted(never_done=True, max_episode=10, workers=1) as training:
        (result,) = [r for r in training.train() if r.number == 1]
        ends = training.buffers["ends"]
        held = training.buffers.bytes
        for _ in range(3):
            training.collector.collect()
        assert training.buffers.bytes == held
    assert result.cut == result.episodes == 4 * (64 // 10)
    assert set(np.unique(ends)) == {RUNS, TIME_UP}


def test_a_rollout_that_ends_is_not_cut() -> None:
    with fitted(steps=4 * (EPISODE + 1)) as training:
        found = training.collector.collect()
    assert found.episodes == 4 and found.cut == 0


class Enough(Exception):
    pass


def explored(settings: Settings, most: int) -> int:
    """How many steps a described rollout takes, up to a bound of ours."""
    steps = 0

    def step() -> None:
        nonlocal steps
        steps += 1
        if steps > most:
            raise Enough

    Explorer(settings, MARKET, 0).explore(Actor(settings.state, settings.width), step)
    return steps


def test_a_described_rollout_goes_on_to_the_end_of_an_episode() -> None:
    assert explored(Settings(width=8, workers=0, steps=200, envs=1), 1000) == 2 * EPISODE


def test_a_described_rollout_never_ends_where_nobody_says_done() -> None:
    with pytest.raises(Enough):
        explored(Settings(width=8, workers=0, steps=20, envs=1, never_done=True), 20 * EPISODE)


def test_a_described_training_changes_all_its_networks_and_targets() -> None:
    settings = Settings(width=8, batch=64, threads=1, workers=0, envs=1, steps=200, iterations=1)
    training = Described(settings, MARKET)
    before = parameters(training)
    targets = [p.clone() for p in training.actor_target.parameters()]
    (result,) = training.train()
    after = parameters(training)
    assert result.episodes == 2 and result.cut == 0
    assert all((before[name] != after[name]).any() for name in before)
    assert all(
        (a != b).any() for a, b in zip(targets, training.actor_target.parameters(), strict=True)
    )
    assert np.isfinite(training.judge())


def test_doing_nothing_earns_nothing() -> None:
    assert mean_return(MARKET, lambda p: np.zeros((p.count, ACTIONS))) == 0.0
