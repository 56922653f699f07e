"""Networks have their stated sizes, advantages are those of the formula, and steps go uphill."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from memfit.systems.trader import ppo
from memfit.systems.trader.networks import Actor, Critic
from memfit.systems.trader.portfolio import DONE, RUNS, TIME_UP
from memfit.systems.trader.settings import DESCRIBED, Settings


def count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_the_networks_are_as_large_as_measured() -> None:
    settings = Settings(**DESCRIBED)  # type: ignore[arg-type]
    assert settings.state == 71
    assert count(Actor(71, 768)) == 651_278
    assert count(Critic(71, 768)) == 646_657


def test_the_likelihood_is_a_normal_distribution_s() -> None:
    actor = Actor(5, 8)
    states, actions = torch.randn(6, 5), torch.randn(6, 7)
    normal = torch.distributions.Normal(actor(states), actor.log_std.exp())
    torch.testing.assert_close(
        actor.log_prob(states, actions), normal.log_prob(actions).sum(1), atol=1e-5, rtol=1e-5
    )
    torch.testing.assert_close(actor.entropy(), normal.entropy().sum(1)[0])


def plainly(
    rewards: np.ndarray, values: np.ndarray, last: float, ends: np.ndarray, g: float, d: float
) -> list[float]:
    """Advantages of one portfolio, each as the sum that defines it."""
    steps = len(rewards)

    def error(t: int) -> float:
        if ends[t] == DONE:
            following = 0.0
        elif ends[t] == TIME_UP:
            following = values[t]
        else:
            following = values[t + 1] if t + 1 < steps else last
        return float(rewards[t] + g * following - values[t])

    found = []
    for t in range(steps):
        total, factor = 0.0, 1.0
        for later in range(t, steps):
            total += factor * error(later)
            if ends[later] != RUNS:
                break
            factor *= g * d
        found.append(total)
    return found


@given(
    rollout=st.lists(
        st.tuples(
            st.floats(-5, 5), st.floats(-5, 5), st.sampled_from([RUNS, RUNS, RUNS, DONE, TIME_UP])
        ),
        min_size=1,
        max_size=12,
    ),
    last=st.floats(-5, 5),
    discount=st.floats(0, 1),
    decay=st.floats(0, 1),
)
def test_advantages_are_the_sums_that_define_them(
    rollout: list[tuple[float, float, int]], last: float, discount: float, decay: float
) -> None:
    rewards, values, ends = (np.array(column) for column in zip(*rollout, strict=True))
    found = ppo.advantages_of(
        torch.tensor(rewards, dtype=torch.float64)[:, None],
        torch.tensor(values, dtype=torch.float64)[:, None],
        torch.tensor([last], dtype=torch.float64),
        torch.tensor(ends)[:, None],
        discount,
        decay,
    )
    np.testing.assert_allclose(
        found[:, 0], plainly(rewards, values, last, ends, discount, decay), atol=1e-9
    )


def test_steps_make_good_actions_likelier_and_values_truer() -> None:
    learner = ppo.Learner(Settings(width=16, learning_rate=0.01))
    states, actions = torch.randn(64, 71), torch.randn(64, 7)
    advantages = torch.where(torch.arange(64) < 32, 1.0, -1.0)
    returns = torch.full((64,), 3.0)
    with torch.no_grad():
        before = learner.actor.log_prob(states, actions)
    losses = [learner.step(states, actions, before, advantages, returns) for _ in range(30)]
    with torch.no_grad():
        change = learner.actor.log_prob(states, actions) - before
    assert change[:32].mean() > 0 > change[32:].mean()
    assert losses[-1][0] < losses[0][0] and losses[-1][1] < losses[0][1] / 2


def test_a_step_stays_near_the_old_policy() -> None:
    """Where an action is already as much likelier as the clip allows, nothing pushes it on."""
    learner = ppo.Learner(Settings(width=8))
    states, actions = torch.randn(4, 71), torch.randn(4, 7)
    with torch.no_grad():
        old = learner.actor.log_prob(states, actions) - 1
    weights = [p.clone() for p in learner.actor.net.parameters()]
    learner.step(states, actions, old, torch.ones(4), torch.zeros(4))
    assert all(
        torch.equal(a, b) for a, b in zip(weights, learner.actor.net.parameters(), strict=True)
    )


def test_normalised_advantages() -> None:
    spread = ppo.normalised(torch.tensor([1.0, 2.0, 6.0]))
    assert float(spread.mean()) == pytest.approx(0, abs=1e-6)
    assert float(spread.std()) == pytest.approx(1, abs=1e-4)
    assert ppo.normalised(torch.tensor([3.0])).tolist() == [0.0]
