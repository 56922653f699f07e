"""Windowed rollout buffers give the minibatches of the library's buffers, to the bit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from sb3_contrib.common.maskable.buffers import MaskableDictRolloutBuffer, MaskableRolloutBuffer
from sb3_contrib.common.recurrent.buffers import RecurrentDictRolloutBuffer, RecurrentRolloutBuffer
from sb3_contrib.common.recurrent.type_aliases import RNNStates
from stable_baselines3.common.buffers import DictRolloutBuffer, RolloutBuffer

from memfit.dropins import (
    Window,
    WindowMaskableRolloutBuffer,
    WindowRecurrentRolloutBuffer,
    WindowRolloutBuffer,
    stack,
)
from tests.dropins.streams import Plan, Stream, plans, same_bits

ACTIONS = spaces.Discrete(3)
VARIANTS = {
    "plain": (RolloutBuffer, DictRolloutBuffer, WindowRolloutBuffer),
    "maskable": (MaskableRolloutBuffer, MaskableDictRolloutBuffer, WindowMaskableRolloutBuffer),
    "recurrent": (RecurrentRolloutBuffer, RecurrentDictRolloutBuffer, WindowRecurrentRolloutBuffer),
}
FRAMES = Plan(
    kind="first",
    dtype="u1",
    n_envs=2,
    length=4,
    new=1,
    lengths=(50,),
    refill="repeat",
    few=False,
    seed=1,
)


def pair(variant: str, space: Any, steps: int, n_envs: int, **options: Any) -> tuple[Any, Any]:
    """The library's buffer and the windowed one."""
    plain, of_dict, windowed = VARIANTS[variant]
    more = {"hidden_state_shape": (steps, 1, n_envs, 2)} if variant == "recurrent" else {}
    theirs = of_dict if isinstance(space, spaces.Dict) else plain
    given_ = {"device": "cpu", "n_envs": n_envs, **more}
    return (
        theirs(steps, space, ACTIONS, **given_),
        windowed(steps, space, ACTIONS, **given_, **options),
    )


def extras(variant: str, n_envs: int, rng: np.random.Generator) -> dict[str, Any]:
    if variant == "maskable":
        return {"action_masks": rng.integers(0, 2, (n_envs, 3))}
    if variant == "recurrent":
        state = torch.tensor(rng.normal(size=(1, n_envs, 2)), dtype=torch.float32)
        return {"lstm_states": RNNStates((state, state + 1), (state + 2, state + 3))}
    return {}


def rollouts(
    buffers: tuple[Any, ...], streams: dict[str, Stream], steps: int, variant: str = "plain"
) -> Iterator[int]:
    """Fill all buffers with the same, again and again; give the number of the rollout."""
    plan = next(iter(streams.values())).plan
    rng = np.random.default_rng(plan.seed)
    obs = {name: stream.reset_all() for name, stream in streams.items()}
    start = np.ones(plan.n_envs)
    for number in range(3):
        for buffer in buffers:
            buffer.reset()
        for _ in range(steps):
            given_ = {
                "obs": dict(obs) if "" not in obs else obs[""],
                "action": rng.integers(0, 3, (plan.n_envs, 1)),
                "reward": rng.normal(size=plan.n_envs),
                "episode_start": start,
                "value": torch.tensor(rng.normal(size=plan.n_envs)),
                "log_prob": torch.tensor(rng.normal(size=plan.n_envs)),
            }
            more = extras(variant, plan.n_envs, rng)
            for buffer in buffers:
                buffer.add(*given_.values(), **more)
            stepped = {name: stream.step() for name, stream in streams.items()}
            obs = {name: found[0] for name, found in stepped.items()}
            start = next(iter(stepped.values()))[2].astype(np.float32)
        for buffer in buffers:
            buffer.compute_returns_and_advantage(torch.ones(plan.n_envs), start)
        yield number


def assert_same_epochs(theirs: Any, ours: Any, batch_size: int | None, seed: int) -> None:
    epochs = []
    for buffer in (theirs, ours):
        np.random.seed(seed)
        epochs.append([list(buffer.get(batch_size)) for _ in range(2)])
    for a, b in zip(*epochs, strict=True):
        assert len(a) == len(b)
        assert all(same_bits(tuple(x), tuple(y)) for x, y in zip(a, b, strict=True))


@settings(max_examples=40, deadline=None)
@given(
    plan=plans,
    steps=st.integers(1, 24),
    batch_size=st.none() | st.integers(1, 20),
    variant=st.sampled_from(sorted(VARIANTS)),
)
def test_minibatches_are_those_of_the_library(
    plan: Plan, steps: int, batch_size: int | None, variant: str
) -> None:
    theirs, ours = pair(variant, plan.space, steps, plan.n_envs)
    for number in rollouts((theirs, ours), {"": Stream(plan)}, steps, variant):
        assert same_bits(theirs.observations, np.asarray(ours.observations))
        assert_same_epochs(theirs, ours, batch_size, number)


@settings(max_examples=20, deadline=None)
@given(plan=plans, other=plans, steps=st.integers(2, 20), variant=st.sampled_from(sorted(VARIANTS)))
def test_dict_observations_need_no_other_class(
    plan: Plan, other: Plan, steps: int, variant: str
) -> None:
    other = Plan(**{**vars(other), "n_envs": plan.n_envs, "lengths": plan.lengths})
    space = spaces.Dict({"a": plan.space, "b": other.space})
    theirs, ours = pair(variant, space, steps, plan.n_envs)
    streams = {"a": Stream(plan), "b": Stream(other)}
    for number in rollouts((theirs, ours), streams, steps, variant):
        assert_same_epochs(theirs, ours, 5, number)


@pytest.mark.parametrize("kind", ["first", "last", "history", "columns", "newest_first", "mixed"])
@pytest.mark.parametrize("new", [1, 2])
def test_windows_are_found(kind: str, new: int) -> None:
    plan = Plan(**{**vars(FRAMES), "kind": kind, "length": 6, "new": new, "dtype": "f4"})
    theirs, ours = pair("plain", plan.space, 40, plan.n_envs)
    for _ in rollouts((theirs, ours), {"": Stream(plan)}, 40):
        (track,) = ours.report()
        assert sum(part.size for part in track.parts if part.moves) == Stream(plan).hist_size
        assert track.complete == 0
    (track,) = ours.report()
    assert track.nbytes < track.dense_nbytes


def test_discrete_observations_are_stored_plainly() -> None:
    theirs, ours = pair("plain", spaces.Discrete(5), 8, 3)
    rng = np.random.default_rng(0)
    for _ in range(8):
        seen = rng.integers(0, 5, 3)
        for buffer in (theirs, ours):
            buffer.add(seen, np.zeros((3, 1)), np.zeros(3), np.zeros(3), *[torch.zeros(3)] * 2)
    assert_same_epochs(theirs, ours, 4, 0)


def test_declared_windows_are_used_from_the_first_step() -> None:
    windows = [stack((4, 3, 2))]
    theirs, ours = pair("plain", FRAMES.space, 30, 2, windows=windows)
    assert ours.report()[0].parts == (Window(length=4, inner=6),)
    for number in rollouts((theirs, ours), {"": Stream(FRAMES)}, 30):
        assert_same_epochs(theirs, ours, 7, number)


def test_kept_minibatches_stay_as_they_are() -> None:
    """Memory is used again only when nobody refers to it: tensor, view, or graph."""
    theirs, ours = pair("plain", FRAMES.space, 32, 2)
    list(rollouts((theirs, ours), {"": Stream(FRAMES)}, 32))
    batches = ours.get(8)
    first = next(batches)
    kept = first.observations[2:4].flatten()[1:]
    copy = kept.clone()
    del first
    for _ in batches:
        pass
    assert torch.equal(kept, copy)


def test_memory_of_minibatches_is_used_again() -> None:
    theirs, ours = pair("plain", FRAMES.space, 32, 2)
    list(rollouts((theirs, ours), {"": Stream(FRAMES)}, 32))
    places = {batch.observations.data_ptr() for _ in range(3) for batch in ours.get(8)}
    assert len(places) <= 2
    assert all(place % 64 == 0 for place in places)


def test_numpy_code_can_use_the_array_alone() -> None:
    from memfit.dropins import WindowArray

    plan = Plan(**{**vars(FRAMES), "lengths": (9,), "refill": "zeros"})
    stream = Stream(plan)
    obs, start = stream.reset_all(), np.ones(2, np.bool_)
    dense = np.zeros((20, *obs.shape), np.uint8)
    array = WindowArray.zeros(dense.shape, np.uint8)
    for step in range(20):
        dense[step] = obs
        array.append(obs, start)
        obs, _, start, _ = stream.step()
    assert array.shape == dense.shape and len(array) == 20 and array.ndim == dense.ndim
    at, env = np.array([3, 0, 19, 7]), np.array([1, 0, 1, 1])
    for key in (3, -1, slice(2, 9), (at, env), (slice(None), 1), (at, env, slice(1, 2)), (4, 1, 2)):
        assert same_bits(dense[key], array[key])
    assert array.nbytes < dense.nbytes
