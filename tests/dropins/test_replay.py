"""Windowed replay buffers give the samples of the library's buffers, to the bit."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.buffers import DictReplayBuffer, NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from memfit.dropins import WindowReplayBuffer, stack
from tests.dropins.streams import Plan, Stream, plans, same_bits

ACTIONS = spaces.Discrete(3)
STORED: dict[str, dict[str, Any]] = {
    "memory": {},
    "disk": {"storage": "disk"},
    "zstd": {"compression": "zstd"},
    "lz4": {"compression": "lz4"},
}
FRAMES = Plan(
    kind="first",
    dtype="u1",
    n_envs=2,
    length=4,
    new=1,
    lengths=(9, 30),
    refill="repeat",
    few=False,
    seed=1,
)


def fill(
    buffers: tuple[Any, ...],
    streams: dict[str, Stream],
    steps: int,
    check: Callable[[int], None] = lambda step: None,
) -> None:
    """Add the same transitions to all buffers, as an off-policy algorithm does."""
    plan = next(iter(streams.values())).plan
    rng = np.random.default_rng(plan.seed)
    obs = {name: stream.reset_all() for name, stream in streams.items()}
    for step in range(steps):
        stepped = {name: stream.step() for name, stream in streams.items()}
        last = {name: found[1] for name, found in stepped.items()}
        _, _, done, cut = next(iter(stepped.values()))
        action, reward = rng.integers(0, 3, (plan.n_envs, 1)), rng.normal(size=plan.n_envs)
        for buffer in buffers:
            buffer.add(
                dict(obs) if "" not in obs else obs[""],
                dict(last) if "" not in last else last[""],
                action,
                reward,
                done,
                [{"TimeLimit.truncated": bool(c)} for c in cut],
            )
        obs = {name: found[0] for name, found in stepped.items()}
        check(step)


def sample(buffer: Any, size: int, seed: int, env: Any = None) -> tuple[Any, ...]:
    np.random.seed(seed)
    return tuple(buffer.sample(size, env=env))


def made(theirs: type[Any], space: Any, size: int, n_envs: int, **options: Any) -> tuple[Any, Any]:
    library = {k: v for k, v in options.items() if k in ("n_steps", "gamma")}
    more = {k: options[k] for k in options if k == "handle_timeout_termination"}
    return (
        theirs(size, space, ACTIONS, "cpu", n_envs=n_envs, **library, **more),
        WindowReplayBuffer(size, space, ACTIONS, "cpu", n_envs=n_envs, **options),
    )


@settings(max_examples=50, deadline=None)
@given(
    plan=plans,
    size=st.integers(1, 80),
    steps=st.integers(1, 90),
    stored=st.sampled_from(sorted(STORED)),
    n_steps=st.sampled_from((None, 1, 3)),
    timeouts=st.booleans(),
)
def test_samples_are_those_of_the_library(
    plan: Plan, size: int, steps: int, stored: str, n_steps: int | None, timeouts: bool
) -> None:
    options = {**STORED[stored], "handle_timeout_termination": timeouts}
    if n_steps is not None:
        options |= {"n_steps": n_steps, "gamma": 0.9}
    library = ReplayBuffer if n_steps is None else NStepReplayBuffer
    theirs, ours = made(library, plan.space, size, plan.n_envs, **options)

    def check(step: int) -> None:
        assert same_bits(sample(theirs, 6, step), sample(ours, 6, step))

    fill((theirs, ours), {"": Stream(plan)}, steps, check)
    assert same_bits(theirs.observations, np.asarray(ours.observations))
    assert same_bits(theirs.next_observations, np.asarray(ours.next_observations))
    ours.close()


@settings(max_examples=20, deadline=None)
@given(plan=plans, other=plans, size=st.integers(1, 60), stored=st.sampled_from(sorted(STORED)))
def test_dict_observations_need_no_other_class(
    plan: Plan, other: Plan, size: int, stored: str
) -> None:
    other = Plan(**{**vars(other), "n_envs": plan.n_envs, "lengths": plan.lengths})
    space = spaces.Dict({"a": plan.space, "b": other.space})
    theirs, ours = made(DictReplayBuffer, space, size, plan.n_envs, **STORED[stored])

    def check(step: int) -> None:
        assert same_bits(sample(theirs, 6, step), sample(ours, 6, step))

    fill((theirs, ours), {"a": Stream(plan), "b": Stream(other)}, 40, check)
    ours.close()


@pytest.mark.parametrize("stored", sorted(STORED))
def test_frames_are_stored_once(stored: str) -> None:
    """For stack and next observation together; the memory of a ring does not grow."""
    theirs, ours = made(ReplayBuffer, FRAMES.space, 2000, 2, **STORED[stored])
    seen: list[int] = []
    fill((theirs, ours), {"": Stream(FRAMES)}, 4000, lambda _: seen.append(ours.report()[0].nbytes))
    assert same_bits(theirs.next_observations, np.asarray(ours.next_observations))
    frames = 2000 * 6
    assert seen[999] < 1.6 * frames + 2000 * 8  # episodes of 9 and 30: complete windows
    assert seen[-1] < 1.1 * seen[999]
    ours.close()


def test_observations_that_are_no_window_are_stored_once_too() -> None:
    plan = Plan(**{**vars(FRAMES), "kind": "noise", "dtype": "f8"})
    theirs, ours = made(ReplayBuffer, plan.space, 1000, 2)
    stream = Stream(plan)
    obs = stream.reset_all()
    for _ in range(500):
        after, last, done, _ = stream.step()
        for buffer in (theirs, ours):
            buffer.add(obs, last, np.zeros((2, 1)), np.zeros(2), done, [{}, {}])
        obs = after
    assert same_bits(theirs.next_observations, np.asarray(ours.next_observations))
    assert ours.report()[0].nbytes < 0.7 * theirs.observations.nbytes * 2


def test_normalised_samples_are_those_of_the_library() -> None:
    plan = Plan(**{**vars(FRAMES), "dtype": "f4"})
    theirs, ours = made(ReplayBuffer, plan.space, 100, 2)
    fill((theirs, ours), {"": Stream(plan)}, 70)
    env = VecNormalize(DummyVecEnv([lambda: _Env(plan.space)] * 2))
    env.obs_rms.update(np.random.default_rng(0).normal(size=(9, *plan.space.shape)))
    assert same_bits(sample(theirs, 20, 0, env), sample(ours, 20, 0, env))


@pytest.mark.parametrize("stored", sorted(STORED))
@pytest.mark.parametrize("steps", [0, 1, 30, 170])
def test_saved_and_loaded_buffers_go_on_alike(stored: str, steps: int, tmp_path: Path) -> None:
    theirs, ours = made(ReplayBuffer, FRAMES.space, 100, 2, **STORED[stored])
    stream = Stream(FRAMES)
    fill((theirs, ours), {"": stream}, steps)
    ours.save(tmp_path / "buffer")
    assert [p.name for p in tmp_path.iterdir()] == ["buffer"]
    loaded = [made(ReplayBuffer, FRAMES.space, 100, 2, **STORED[stored])[1]]
    loaded[0].load(tmp_path / "buffer")
    loaded += [pickle.loads(pickle.dumps(ours, protocol=5)), copy.deepcopy(ours)]

    def check(step: int) -> None:
        for buffer in (ours, *loaded):
            assert same_bits(sample(theirs, 6, step), sample(buffer, 6, step))

    fill((theirs, ours, *loaded), {"": stream}, 80, check)
    for buffer in (ours, *loaded):
        buffer.close()


def test_a_file_holds_only_what_is_filled(tmp_path: Path) -> None:
    _, ours = made(ReplayBuffer, FRAMES.space, 100_000, 1)
    fill((ours,), {"": Stream(Plan(**{**vars(FRAMES), "n_envs": 1}))}, 50)
    ours.save(tmp_path / "buffer")
    assert (tmp_path / "buffer").stat().st_size < 10_000


def test_reset_forgets_everything() -> None:
    theirs, ours = made(ReplayBuffer, FRAMES.space, 40, 2, windows=[stack((4, 3, 2))])
    fill((ours,), {"": Stream(FRAMES)}, 30)
    ours.reset()
    fill((theirs, ours), {"": Stream(FRAMES)}, 10)
    assert same_bits(sample(theirs, 30, 0), sample(ours, 30, 0))


class _Env(gymnasium.Env[Any, Any]):
    """Only spaces: nothing steps it."""

    def __init__(self, space: spaces.Box) -> None:
        self.observation_space = space
        self.action_space = ACTIONS
