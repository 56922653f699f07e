"""Narrow observations: the same numbers, or an error that names the one that is not."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from stable_baselines3 import PPO

from memfit.dropins import NarrowObservation, narrowest
from memfit.dropins.narrow import lost
from memfit.errors import UsageError

DTYPES = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"]
WIDE = spaces.Box(-np.inf, np.inf, (2, 3), np.float64)


class Shows(gymnasium.Env[Any, Any]):
    """Shows what it is given, one after another."""

    action_space = spaces.Discrete(2)

    def __init__(self, space: spaces.Space[Any], *shown: Any) -> None:
        self.observation_space = space
        self.shown = list(shown)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.at = 0
        return self.shown[0], {}

    def step(self, action: Any) -> Any:
        self.at = (self.at + 1) % len(self.shown)
        return self.shown[self.at], 0.0, False, False, {}


def array(*values: float, dtype: Any = np.float64) -> Any:
    return np.resize(np.array(values, dtype), (2, 3))


def value(number: Any) -> Any:
    """A number as Python has it, exact whatever its dtype."""
    return float(number) if number.dtype.kind == "f" else int(number)


def same(one: Any, other: Any) -> bool:
    if one != one or other != other:
        return bool(one != one and other != other)
    signs = [np.signbit(np.float64(n)) if n == 0 else n < 0 for n in (one, other)]
    return bool(one == other and signs[0] == signs[1])


@given(
    numbers=st.sampled_from(DTYPES).flatmap(lambda d: hnp.arrays(d, st.integers(1, 6))),
    dtype=st.sampled_from(DTYPES),
)
def test_what_is_lost_is_what_python_says(numbers: Any, dtype: str) -> None:
    """Python compares whole numbers and floats of any size exactly."""
    with np.errstate(all="ignore"):
        small = numbers.astype(dtype)
    found = lost(numbers, small)
    wanted = [not same(value(a), value(b)) for a, b in zip(numbers, small, strict=True)]
    assert found.tolist() == wanted


@given(
    numbers=st.one_of(
        hnp.arrays("f8", (2, 3), elements=st.floats(width=32)),
        hnp.arrays("f8", (2, 3), elements=st.integers(-300, 300).map(float)),
        hnp.arrays("f8", (2, 3)),
    ),
    dtype=st.sampled_from(["u1", "i2", "i4", "f2", "f4"]),
)
def test_an_observation_is_the_same_or_refused(numbers: Any, dtype: str) -> None:
    env = NarrowObservation(Shows(WIDE, numbers), dtype)
    try:
        obs, _ = env.reset()
    except UsageError:
        with np.errstate(all="ignore"):
            assert lost(numbers, numbers.astype(dtype)).any()
        return
    assert obs.dtype == np.dtype(dtype)
    back = obs.astype(np.float64)
    assert np.array_equal(back, numbers, equal_nan=True)
    assert (np.signbit(back) == np.signbit(numbers))[~np.isnan(numbers)].all()


@pytest.mark.parametrize(
    ("numbers", "dtype", "match"),
    [
        ((1, 2, 0.1, 3, 4, 5), np.float32, r"observation\[0, 2\] is .*0\.1.*float32.*wider dtype"),
        ((1, 2, 3, 4, -0.0, 5), np.uint8, r"observation\[1, 1\] is .*-0\.0"),
        ((1, 2, 3, 4, 5, np.nan), np.int16, r"observation\[1, 2\] is .*nan"),
        ((np.inf, 1), np.int32, r"observation\[0, 0\] is .*inf"),
        ((1, 256), np.uint8, r"observation\[0, 1\] is .*256"),
        ((1e39, 1), np.float32, r"observation\[0, 0\] is .*1e\+39"),
        ((2.0**31, 1), np.int32, r"observation\[0, 0\]"),
    ],
)
def test_a_loss_names_the_index_and_the_value(numbers: Any, dtype: Any, match: str) -> None:
    env = NarrowObservation(Shows(WIDE, array(1), array(*numbers)), dtype)
    env.reset()
    with pytest.raises(UsageError, match=match):
        env.step(0)


def test_nan_infinity_and_signs_are_kept() -> None:
    given = array(np.nan, -np.nan, np.inf, -np.inf, -0.0, 65504)
    obs, _ = NarrowObservation(Shows(WIDE, given), np.float16).reset()
    assert obs.dtype == np.float16
    np.testing.assert_array_equal(obs.astype(np.float64), given)
    assert np.signbit(obs[1, 1])


def test_rounding_is_counted_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    env = NarrowObservation(Shows(WIDE, array(0.1, 1), array(0.5)), np.float32, on_loss="round")
    obs, _ = env.reset()
    env.step(0)
    env.reset()
    assert obs[0, 0] == np.float32(0.1)
    assert env.rounded == 6
    assert [r.levelname for r in caplog.records if r.name == "memfit.dropins"] == ["WARNING"]


@pytest.mark.parametrize(
    ("number", "dtype"), [(1e39, "f4"), (0.5, "u1"), (256.0, "u1"), (np.nan, "i2"), (-0.0, "i2")]
)
def test_rounding_is_no_excuse_for_another_number(number: float, dtype: str) -> None:
    env = NarrowObservation(Shows(WIDE, array(number)), dtype, on_loss="round")
    with pytest.raises(UsageError, match="wider dtype"):
        env.reset()


@pytest.mark.parametrize(
    ("space", "dtype", "wanted"),
    [
        (spaces.Box(0, 255, (3,), np.float32), np.uint8, spaces.Box(0, 255, (3,), np.uint8)),
        (spaces.Box(-1, 1000, (3,), np.int64), np.int16, spaces.Box(-1, 1000, (3,), np.int16)),
        (spaces.Box(-1, 1000, (3,), np.int64), np.uint8, spaces.Box(0, 255, (3,), np.uint8)),
        (
            spaces.Box(-np.inf, np.inf, (3,), np.float64),
            np.int32,
            spaces.Box(-(2**31), 2**31 - 1, (3,), np.int32),
        ),
        (
            spaces.Box(-1e300, np.inf, (3,), np.float64),
            np.float32,
            spaces.Box(-np.inf, np.inf, (3,), np.float32),
        ),
        (spaces.Box(-0.5, 2.5, (3,), np.float64), np.int8, spaces.Box(0, 2, (3,), np.int8)),
    ],
)
def test_the_space_is_narrowed_too(space: Any, dtype: Any, wanted: Any) -> None:
    assert NarrowObservation(Shows(space), dtype).observation_space == wanted


PARTS = spaces.Dict(
    {
        "near": spaces.Box(-9, 9, (2,), np.float64),
        "pixels": spaces.Box(0, 255, (2, 2), np.uint8),
        "mode": spaces.Discrete(4),
        "deep": spaces.Dict({"counts": spaces.Box(0, 99, (3,), np.int64)}),
    }
)


def parts(near: float = 0.5, count: int = 7) -> dict[str, Any]:
    return {
        "near": np.full(2, near),
        "pixels": np.ones((2, 2), np.uint8),
        "mode": 3,
        "deep": {"counts": np.full(3, count)},
    }


def test_parts_of_a_dict_have_dtypes_of_their_own() -> None:
    asked = {"near": np.float16, "deep": {"counts": np.uint8}}
    env = NarrowObservation(Shows(PARTS, parts(), parts(count=300)), asked)
    obs, _ = env.reset()
    assert obs["near"].dtype == np.float16
    assert obs["deep"]["counts"].dtype == np.uint8
    assert obs["pixels"].dtype == np.uint8 and obs["mode"] == 3
    assert env.observation_space.contains(obs)
    with pytest.raises(UsageError, match=r"observation\['deep'\]\['counts'\]\[0\] is .*300"):
        env.step(0)


def test_one_dtype_is_for_every_larger_part() -> None:
    env = NarrowObservation(Shows(PARTS, parts()), np.float32)
    obs, _ = env.reset()
    assert {k: getattr(v, "dtype", None) for k, v in obs.items() if k != "deep"} == {
        "near": np.float32,
        "pixels": np.uint8,
        "mode": None,
    }
    assert obs["deep"]["counts"].dtype == np.float32


def test_dtypes_are_found_from_what_is_shown() -> None:
    env = NarrowObservation.found(Shows(PARTS, parts(), parts(near=-3, count=80)), steps=5)
    assert env.dtypes == {
        "observation['near']": np.float16,
        "observation['deep']['counts']": np.uint8,
    }
    one = NarrowObservation.found(Shows(WIDE, array(1, 2), array(-300)), steps=3)
    assert one.observation_space.dtype == np.int16
    obs, _ = one.reset()
    assert obs.tolist() == array(1, 2).tolist()


@given(hnp.arrays(st.sampled_from(DTYPES), (5,)))
def test_the_narrowest_loses_nothing_and_no_smaller_one_would_do(numbers: Any) -> None:
    found = narrowest(numbers)
    assert found.itemsize <= numbers.dtype.itemsize
    with np.errstate(all="ignore"):
        assert not lost(numbers, numbers.astype(found)).any()
        smaller = [np.dtype(d) for d in DTYPES if np.dtype(d).itemsize < found.itemsize]
        assert all(lost(numbers, numbers.astype(d)).any() for d in smaller)


@pytest.mark.parametrize(
    ("space", "dtype", "options", "match"),
    [
        (WIDE, np.float64, {}, "smaller dtype"),
        (spaces.Discrete(3), np.uint8, {}, "smaller dtype"),
        (WIDE, "text", {}, "such as numpy.float32"),
        (WIDE, bool, {}, "such as numpy.float32"),
        (WIDE, {"a": np.uint8}, {}, "is no Dict"),
        (PARTS, {"far": np.uint8}, {}, "its keys are"),
        (WIDE, np.float32, {"on_loss": "ignore"}, "give one of"),
        (spaces.Box(0.2, 0.7, (2,), np.float64), np.uint8, {}, "ask for a float"),
    ],
)
def test_wrong_arguments_are_refused(
    space: Any, dtype: Any, options: dict[str, Any], match: str
) -> None:
    with pytest.raises(UsageError, match=match):
        NarrowObservation(Shows(space), dtype, **options)


@pytest.mark.parametrize(
    ("space", "shown"),
    [
        (WIDE, np.zeros((3, 2))),
        (WIDE, np.zeros((2, 3), object)),
        (PARTS, {"near": np.zeros(2)}),
        (PARTS, np.zeros(2)),
    ],
)
def test_a_changed_space_is_refused(space: Any, shown: Any) -> None:
    env = NarrowObservation(Shows(space, shown), np.float16)
    with pytest.raises(UsageError, match="fix what the env returns"):
        env.reset()


class Noisy(Shows):
    """Random numbers of its space."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        gymnasium.Env.reset(self, seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        seen = self.observation_space.sample()
        done = self.np_random.random() < 0.1
        return seen, float(np.mean(seen)), bool(done), False, {}


@pytest.mark.parametrize(
    ("space", "dtype", "on_loss"),
    [
        (spaces.Box(0, 200, (5,), np.int64), np.uint8, "raise"),
        (spaces.Box(-1, 1, (5,), np.float64), np.float32, "round"),
    ],
)
def test_training_is_the_same_to_the_bit(space: Any, dtype: Any, on_loss: str) -> None:
    """stable-baselines3 makes float32 of observations either way."""
    made = []
    for narrow in (False, True):
        env: Any = Noisy(copy.deepcopy(space))
        env = NarrowObservation(env, dtype, on_loss=on_loss) if narrow else env
        model = PPO("MlpPolicy", env, n_steps=16, batch_size=8, n_epochs=2, seed=2, device="cpu")
        model.learn(64)
        assert model.rollout_buffer.observations.dtype == (dtype if narrow else space.dtype)
        made.append(model.policy.state_dict())
    assert all(torch.equal(made[0][name], made[1][name]) for name in made[0])
