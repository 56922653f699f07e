"""The timeline gives the same minibatches as storage that keeps every observation whole."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from memfit.systems.drone.described import DescribedEnv
from memfit.systems.drone.flight import Flight
from memfit.systems.drone.settings import CHANNELS, EPISODE, TARGETS, Settings
from memfit.systems.drone.timeline import Timeline


def fly_both(chosen: Settings) -> tuple[Timeline, torch.Tensor]:
    """The same episode in a timeline, and as the observations that a plain trainer keeps."""
    plain = Settings(
        agents=chosen.agents, history=chosen.history, every=chosen.every, storage="float32"
    )
    whole = DescribedEnv(plain, Flight(chosen.agents, seed=3, device="cpu"))
    flight = Flight(chosen.agents, seed=3, device="cpu")
    timeline = Timeline(chosen, flight.scale)
    flight.reset()
    timeline.begin()
    observation = whole.reset()
    kept = []
    draw = torch.Generator().manual_seed(5)
    for step in range(EPISODE):
        flight.targets(timeline.targets[:, step])
        actions = torch.randn(chosen.agents, 4, generator=draw)
        kept.append(observation.clone())
        flight.advance(actions, timeline.fresh(step), timeline.rewards[:, step], chosen.every)
        observation, rewards = whole.step(actions)
        assert torch.equal(rewards, timeline.rewards[:, step])
    return timeline, torch.stack(kept)


@settings(max_examples=6, deadline=None)
@given(
    agents=st.integers(1, 9),
    history=st.sampled_from([10, 20, 300]),
    every=st.sampled_from([1, 2, 5, 10]),
    storage=st.sampled_from(["float32", "int16", "int32"]),
    minibatch=st.integers(1, 300),
)
def test_minibatches_are_bit_identical_to_whole_observations(
    agents: int, history: int, every: int, storage: str, minibatch: int
) -> None:
    chosen = Settings(
        agents=agents, history=history, every=every, storage=storage, minibatch=minibatch
    )
    timeline, whole = fly_both(chosen)
    seen = torch.zeros(agents, EPISODE, dtype=torch.int64)
    draw = torch.Generator().manual_seed(1)
    for who, when in timeline.order(draw):
        batch = timeline.gather(who, when)
        plain = whole[when, who]
        assert torch.equal(batch.windows.flatten(1), plain[:, :-TARGETS])
        assert torch.equal(batch.targets, plain[:, -TARGETS:])
        seen[who, when] += 1
    assert (seen == 1).all()  # every sample once an epoch


def test_windows_are_views() -> None:
    timeline = Timeline(Settings(agents=3), torch.ones(CHANNELS))
    for step in (0, 1, EPISODE):
        window = timeline.windows(step)
        assert window.untyped_storage().data_ptr() == timeline.samples.untyped_storage().data_ptr()
        assert window.shape == (3, 300, CHANNELS)


def test_a_timeline_holds_each_sample_once() -> None:
    timeline = Timeline(Settings(agents=7), torch.ones(CHANNELS))
    assert timeline.samples.nbytes == 7 * (300 + 10 * EPISODE) * CHANNELS * 2


def test_only_steps_that_were_acted_on_are_learned() -> None:
    timeline = Timeline(Settings(agents=5, act_every=10, minibatch=7), torch.ones(CHANNELS))
    pairs = [
        (int(a), int(s))
        for who, when in timeline.order(torch.Generator().manual_seed(0))
        for a, s in zip(who, when, strict=True)
    ]
    assert sorted(pairs) == [(a, s) for a in range(5) for s in range(0, EPISODE, 10)]


def test_advantages_are_those_of_the_plain_trainer() -> None:
    from memfit.systems.drone import ppo
    from memfit.systems.drone.described import advantages_of

    timeline = Timeline(Settings(agents=4, storage="float32"), torch.ones(CHANNELS))
    timeline.rewards.normal_(generator=torch.Generator().manual_seed(0))
    timeline.values.normal_(generator=torch.Generator().manual_seed(1))
    last = torch.ones(4)
    rewards = [timeline.rewards[:, t].clone() for t in range(EPISODE)]
    values = [timeline.values[:, t].clone() for t in range(EPISODE)]
    advantages, returns = advantages_of(rewards, values, last)
    timeline.finish(last, ppo.DISCOUNT, ppo.DECAY)
    torch.testing.assert_close(timeline.values.T, advantages)
    assert torch.equal(timeline.rewards.T, returns)


@pytest.mark.parametrize("storage", ["float16", "bfloat16", "int8", "uint8"])
def test_types_that_lose_readings_are_refused(storage: str) -> None:
    from memfit.errors import UsageError
    from memfit.systems.drone.settings import check_storage

    with pytest.raises(UsageError, match=r"would change .* readings: give int16 or float32"):
        check_storage(storage)
