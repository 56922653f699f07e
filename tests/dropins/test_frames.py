"""Stacked frames as views, against gymnasium's own stacking."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.wrappers import FrameStackObservation
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3 import PPO

from memfit.dropins import StackFrames, WindowRolloutBuffer
from memfit.errors import Unsupported, UsageError

BOX = spaces.Box(0, 255, (2, 3), np.uint8)
SPACES: dict[str, spaces.Space[Any]] = {
    "pixels": BOX,
    "floats": spaces.Box(-np.inf, np.inf, (4,), np.float32),
    "above zero": spaces.Box(2.0, 3.0, (3,), np.float64),
    "scalar": spaces.Box(-1, 1, (), np.float32),
    "discrete": spaces.Discrete(5, start=2),
    "many": spaces.MultiDiscrete([3, 4]),
    "bits": spaces.MultiBinary(6),
    "dict": spaces.Dict({"b": BOX, "a": spaces.Dict({"c": spaces.Discrete(3)})}),
    "tuple": spaces.Tuple((BOX, spaces.Box(-1, 1, (2,), np.float32))),
}


class Sampled(gymnasium.Env[Any, Any]):
    """Shows samples of a space; episodes end after a given number of steps."""

    action_space = spaces.Discrete(2)

    def __init__(self, space: spaces.Space[Any], length: int = 7) -> None:
        self.observation_space = copy.deepcopy(space)
        self.length = length

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.age = 0
        return self.observation_space.sample(), {"age": 0}

    def step(self, action: Any) -> Any:
        self.age += 1
        seen = self.observation_space.sample()
        return seen, float(self.age), self.age >= self.length, False, {"age": self.age}


def assert_equal(ours: Any, theirs: Any) -> None:
    """The same structure, dtypes, shapes and bits."""
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for key in theirs:
            assert_equal(ours[key], theirs[key])
    elif isinstance(theirs, tuple):
        assert isinstance(ours, tuple) and len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            assert_equal(mine, other)
    else:
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        assert ours.tobytes() == theirs.tobytes()


def play(env: gymnasium.Env[Any, Any], steps: int, seed: int) -> list[Any]:
    """What an env shows, kept as it is, and compared only afterwards."""
    obs, info = env.reset(seed=seed)
    seen: list[Any] = [(obs, info)]
    for _ in range(steps):
        obs, reward, terminated, truncated, info = env.step(0)
        seen.append((obs, reward, terminated, truncated, info))
        if terminated or truncated:
            seen.append(env.reset())
    return seen


STACKERS = [FrameStackObservation, StackFrames]


@settings(deadline=None, max_examples=60)
@given(
    name=st.sampled_from(sorted(SPACES)),
    stack_size=st.integers(1, 5),
    length=st.integers(1, 20),
    extra=st.integers(0, 9),
    padding=st.sampled_from(["reset", "zero", "custom"]),
    seed=st.integers(0, 1000),
)
def test_observations_are_those_of_gymnasium_to_the_bit(
    name: str, stack_size: int, length: int, extra: int, padding: str, seed: int
) -> None:
    space = SPACES[name]
    pad: Any = padding
    if padding == "custom":
        own = copy.deepcopy(space)
        own.seed(seed)
        pad = own.sample()
    theirs = FrameStackObservation(Sampled(space, length), stack_size, padding_type=pad)
    rows = 2 * stack_size + extra
    ours = StackFrames(Sampled(space, length), stack_size, padding_type=pad, rows=rows)
    assert ours.observation_space == theirs.observation_space
    wanted, found = play(theirs, 50, seed), play(ours, 50, seed)
    for one, other in zip(found, wanted, strict=True):
        assert_equal(one[0], other[0])
        assert one[1:] == other[1:]
        assert ours.observation_space.contains(one[0])


@pytest.mark.parametrize("stacker", STACKERS)
class TestContract:
    """What both promise."""

    def test_spaces(self, stacker: Any) -> None:
        assert stacker(Sampled(BOX), 4).observation_space == spaces.Box(0, 255, (4, 2, 3), np.uint8)

    def test_what_is_kept_stays_as_it_was(self, stacker: Any) -> None:
        env = stacker(Sampled(BOX, 1000), 3)
        obs, _ = env.reset(seed=1)
        kept = [(obs, obs.copy())]
        for _ in range(200):
            obs = env.step(0)[0]
            kept.append((obs, obs.copy()))
        assert all((one == copied).all() for one, copied in kept)

    def test_a_step_before_a_reset_is_padded_with_zeros(self, stacker: Any) -> None:
        inner = Sampled(BOX)
        inner.age = 0
        obs = stacker(inner, 3).step(0)[0]
        assert not obs[:2].any()

    def test_the_constructor_is_recorded(self, stacker: Any) -> None:
        env = gymnasium.make("CartPole-v1")
        wrapped = stacker(env, 3)
        assert wrapped.spec is not None
        assert wrapped.spec.additional_wrappers[-1].kwargs["stack_size"] == 3
        again = gymnasium.make(wrapped.spec)
        assert again.observation_space == wrapped.observation_space

    def test_copies_go_on_alike(self, stacker: Any) -> None:
        env = stacker(Sampled(BOX), 3)
        env.reset(seed=4)
        for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
            first = copy.deepcopy(env)
            for _ in range(5):
                assert_equal(other.step(0)[0], first.step(0)[0])

    @pytest.mark.parametrize("size", [0, -1, 2.5])
    def test_a_wrong_size_is_refused(self, stacker: Any, size: Any) -> None:
        with pytest.raises((UsageError, ValueError, TypeError)):
            stacker(Sampled(BOX), size)

    @pytest.mark.filterwarnings("ignore:.*Casting input x to numpy array")
    @pytest.mark.parametrize("padding", ["none", np.zeros((9, 9), np.uint8)])
    def test_wrong_padding_is_refused(self, stacker: Any, padding: Any) -> None:
        with pytest.raises((UsageError, ValueError)):
            stacker(Sampled(BOX), 3, padding_type=padding)


def test_a_step_copies_no_stack() -> None:
    env = StackFrames(Sampled(BOX, 1000), 4)
    one, _ = env.reset(seed=1)
    other = env.step(0)[0]
    assert np.shares_memory(one, other)
    assert other.base is not None and other[:3].tobytes() == one[1:].tobytes()


def test_observations_are_read_only() -> None:
    env = StackFrames(Sampled(SPACES["dict"]), 4)
    obs, _ = env.reset(seed=1)
    with pytest.raises(ValueError, match="read-only"):
        obs["b"][0] = 1


def test_an_env_that_shows_one_array_again_and_again() -> None:
    """gymnasium keeps the array itself, which then shows its newest content in all frames."""

    class Same(Sampled):
        shown = np.zeros((2, 3), np.uint8)

        def reset(self, **_: Any) -> Any:
            self.shown[:] = 0
            return self.shown, {}

        def step(self, action: Any) -> Any:
            self.shown += 1
            return self.shown, 0.0, False, False, {}

    env = StackFrames(Same(BOX), 3)
    env.reset()
    env.step(0)
    assert env.step(0)[0][:, 0, 0].tolist() == [0, 1, 2]


class Changed(Sampled):
    """Shows something else at its second step."""

    def __init__(self, space: spaces.Space[Any], other: Any) -> None:
        super().__init__(space)
        self.other = other

    def step(self, action: Any) -> Any:
        return self.other, 0.0, False, False, {}


@pytest.mark.parametrize(
    ("space", "other"),
    [
        (BOX, np.zeros((2, 4), np.uint8)),
        (BOX, np.zeros((1, 3), np.uint8)),  # numpy would repeat it without a word
        (BOX, np.uint8(3)),
        (BOX, np.full((2, 3), 300)),
        (BOX, np.zeros((2, 3), np.float32)),
        (SPACES["dict"], {"b": np.zeros((2, 3), np.uint8)}),
        (SPACES["dict"], np.zeros((2, 3), np.uint8)),
        (SPACES["tuple"], (np.zeros((2, 3), np.uint8),)),
    ],
)
def test_a_changed_space_is_refused(space: Any, other: Any) -> None:
    env = StackFrames(Changed(space, other), 3)
    env.reset(seed=1)
    with pytest.raises(UsageError, match="Fix what the env returns"):
        env.step(0)


def test_spaces_without_frames_are_refused() -> None:
    with pytest.raises(Unsupported, match="FrameStackObservation"):
        StackFrames(Sampled(spaces.Text(5)), 3)
    with pytest.raises(UsageError, match="6 or more"):
        StackFrames(Sampled(BOX), 3, rows=5)


@pytest.mark.parametrize("window", [False, True])
def test_training_is_the_same_to_the_bit(window: bool) -> None:
    """Views go through vector envs and buffers of stable-baselines3 as copies do."""
    more: dict[str, Any] = {"rollout_buffer_class": WindowRolloutBuffer} if window else {}
    made = []
    for stacker in STACKERS:
        env = stacker(Sampled(SPACES["floats"]), 3)
        model = PPO("MlpPolicy", env, n_steps=16, batch_size=8, n_epochs=2, seed=2, **more)
        model.learn(64)
        made.append(model.policy.state_dict())
    assert all(torch.equal(made[0][name], made[1][name]) for name in made[0])


def test_a_view_becomes_a_tensor() -> None:
    obs, _ = StackFrames(Sampled(BOX), 3).reset(seed=1)
    assert torch.tensor(obs).shape == (3, 2, 3)
