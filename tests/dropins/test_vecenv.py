"""One contract for stable-baselines3's vector envs and the light one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv

from memfit.dropins import LightVecEnv
from tests.dropins.vecenv_envs import SPACES, Tagged, Walk, same, walks

Maker = Callable[..., VecEnv]
KINDS: dict[str, Maker] = {
    "dummy": DummyVecEnv,
    "subproc": lambda envs: SubprocVecEnv(envs, start_method="fork"),
    "light, 1 worker": lambda envs: LightVecEnv(envs, workers=1),
    "light, 2 workers": lambda envs: LightVecEnv(envs, workers=2),
}
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest) -> Maker:
    return KINDS[request.param]


def by_hand(envs: list[Any], steps: int, seed: int, actions: Any) -> list[Any]:
    """What a vector env must give: observations, rewards, ends and infos, env by env."""
    found = [[env.reset(seed=seed + i)[0] for i, env in enumerate(envs)]]
    for step in range(steps):
        row = []
        for i, env in enumerate(envs):
            obs, reward, ended, cut, info = env.step(actions[step][i])
            info = {**info, "TimeLimit.truncated": cut and not ended}
            if ended or cut:
                info["terminal_observation"] = obs
                obs, _ = env.reset()
            row.append((obs, reward, ended or cut, info))
        found.append(row)
    return found


def batched(space: spaces.Space[Any], parts: list[Any]) -> Any:
    if isinstance(space, spaces.Dict):
        return {key: np.stack([part[key] for part in parts]) for key in space.spaces}
    if isinstance(space, spaces.Tuple):
        return tuple(np.stack([part[i] for part in parts]) for i in range(len(space.spaces)))
    return np.stack(parts)


@pytest.mark.parametrize("kind", SPACES)
def test_steps_are_those_of_the_envs(make: Maker, kind: str) -> None:
    count, steps = 3, 40
    actions = np.random.default_rng(0).integers(0, 4, (steps, count))
    expected = by_hand([build() for build in walks(count, kind)], steps, 5, actions)
    env = make(walks(count, kind))
    try:
        env.seed(5)
        space = env.observation_space
        assert same(env.reset(), batched(space, expected[0]))
        for step in range(steps):
            obs, rewards, dones, infos = env.step(actions[step])
            row = expected[step + 1]
            assert same(obs, batched(space, [one[0] for one in row]))
            assert np.allclose(rewards, [one[1] for one in row], rtol=1e-6)
            assert dones.dtype == np.bool_ and dones.tolist() == [one[2] for one in row]
            for info, (*_, wanted) in zip(infos, row, strict=True):
                assert list(info) == list(wanted)
                assert all(same(info[key], wanted[key]) for key in wanted)
    finally:
        env.close()


def test_infos_of_resets_and_options_are_kept_until_the_next(make: Maker) -> None:
    env = make(walks(2))
    try:
        env.seed(0)
        env.set_options([{"map": 1}, {}])
        env.set_attr("level", 4, indices=1)
        env.reset()
        assert [info["options"] for info in env.reset_infos] == [{"map": 1}, None]
        for _ in range(30):
            env.step(np.zeros(2, np.int64))
        assert [info["options"] for info in env.reset_infos] == [None, None]
        env.reset()
        assert [info["options"] for info in env.reset_infos] == [None, None]
    finally:
        env.close()


def test_what_was_handed_out_stays_as_it_is(make: Maker) -> None:
    env = make(walks(2, "dict"))
    try:
        held: list[Any] = [env.reset()]
        copies = [{key: part.copy() for key, part in held[0].items()}]
        for _ in range(12):
            held.append(env.step(np.zeros(2, np.int64))[0])
            copies.append({key: part.copy() for key, part in held[-1].items()})
            held[-1]["a"][0] = held[-1]["a"][0]  # it may be written to
        assert same(held, copies)
    finally:
        env.close()


def test_attributes_methods_and_wrappers(make: Maker) -> None:
    env = make(walks(3))
    try:
        env.set_attr("level", 7, indices=[0, 2])
        assert env.get_attr("level") == [7, 0, 7]
        assert env.get_attr("level", indices=1) == [0]
        assert env.get_attr("level", indices=[2, 1]) == [7, 0]
        assert env.env_method("add", 2) in ([9, 2, 9], [2, 2, 2])
        assert env.env_method("add", 2, twice=True, indices=[1]) == [4]
        assert env.env_is_wrapped(Tagged) == [True, True, True]
        assert env.env_is_wrapped(gymnasium.Wrapper) == [True, True, True]
        assert env.env_is_wrapped(gymnasium.wrappers.TimeLimit, indices=0) == [False]
        assert env.has_attr("level") and not env.has_attr("missing")
    finally:
        env.close()


def test_asking_for_a_wrapper_does_not_load_it_in_the_workers() -> None:
    """Evaluations ask whether an env has the library's Monitor, whose module loads torch."""
    env = LightVecEnv(walks(2), workers=2)
    assert env.env_is_wrapped(Monitor) == [False, False]
    for pid in env.pids:
        assert "torch" not in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
    env.close()
    env = LightVecEnv([lambda: Monitor(Walk())])
    assert env.env_is_wrapped(Monitor) == [True]
    env.close()


@pytest.mark.parametrize("kind", ["dummy", "light, 1 worker", "light, 2 workers"])
def test_what_a_method_raises_is_raised_and_harms_nothing(kind: str) -> None:
    env = KINDS[kind](walks(3))
    try:
        with pytest.raises(AttributeError, match="missing"):
            env.get_attr("missing")
        with pytest.raises(TypeError, match="add"):
            env.env_method("add", indices=1)
        assert env.get_attr("level") == [0, 0, 0]
    finally:
        env.close()


def test_pictures(make: Maker) -> None:
    env = make(walks(4))
    try:
        assert env.render_mode == "rgb_array"
        env.reset()
        pictures = env.get_images()
        assert [picture.shape for picture in pictures if picture is not None] == [(2, 2, 3)] * 4
        whole = env.render("rgb_array")
        assert whole is not None and whole.shape == (4, 4, 3)
    finally:
        env.close()


@pytest.mark.parametrize("reward", [float, int, np.float32, np.float64, np.float16, np.int8, bool])
def test_rewards_have_the_type_of_the_library(reward: type) -> None:
    found = []
    for kind in ("subproc", "light, 1 worker", "light, 2 workers"):
        env = KINDS[kind]([*walks(2, reward=reward), *walks(1)])
        env.seed(0)
        env.reset()
        found.append([env.step(np.zeros(3, np.int64))[1] for _ in range(5)])
        env.close()
    assert same(found[0], found[1]) and same(found[0], found[2])


@pytest.mark.parametrize(
    ("space", "actions"),
    [
        (spaces.Box(-1, 1, (2, 3)), np.random.default_rng(0).random((2, 2, 3), np.float32)),
        (spaces.Box(-1, 1, (2,)), np.random.default_rng(0).random((2, 2))[:, ::-1]),
        (spaces.Box(-1, 1, (0,)), np.zeros((2, 0))),
        (spaces.Discrete(3), [1, np.int32(2)]),
        (spaces.Discrete(3), np.array([[1], [2]])),
        (spaces.MultiDiscrete([3, 3]), np.array([[1, 2], [0, 1]], np.uint8)),
    ],
)
def test_envs_get_the_actions_that_were_given(space: Any, actions: Any) -> None:
    found = []
    for kind in ("subproc", "light, 1 worker", "light, 2 workers"):
        env = KINDS[kind](walks(2, action=space))
        env.reset()
        env.step(actions)
        env.step(actions)
        found.append(env.get_attr("actions"))
        env.close()
    kinds = [[type(action) for action in env] for env in found[0]]
    for other in found[1:]:
        assert same(found[0], other)
        assert [[type(action) for action in env] for env in other] == kinds


def test_make_vec_env_takes_it() -> None:
    got = []
    for cls in (DummyVecEnv, LightVecEnv):
        env = make_vec_env("CartPole-v1", n_envs=3, seed=3, vec_env_cls=cls)
        obs = [env.reset(), *(env.step(np.array([0, 1, 1]))[0] for _ in range(30))]
        got.append((obs, env.env_method("get_wrapper_attr", "spec")[0].id))
        env.close()
    assert same(got[0], got[1])


def test_workers_have_random_numbers_of_their_own() -> None:
    class Draws(Walk):
        def draw(self) -> tuple[float, float]:
            import random

            return float(np.random.random()), random.random()

    env = LightVecEnv([Draws for _ in range(3)], workers=3)
    drawn = env.env_method("draw")
    env.close()
    assert len({one for one, _ in drawn}) == len({other for _, other in drawn}) == 3


def test_nothing_is_copied_while_two_are_held_and_each_is_right_beyond() -> None:
    env = LightVecEnv(walks(2), workers=1)
    last, before = env.reset(), None
    for _ in range(20):
        before, last = last, env.step(np.zeros(2, np.int64))[0]
        assert before.base is not None and last.base is not None
    assert env.copies == 0
    held = [env.step(np.zeros(2, np.int64))[0][0] for _ in range(6)]  # views count, too
    assert env.copies > 0 and len({row.tobytes() for row in held}) == 6
    held.clear()
    copies = env.copies
    env.step(np.zeros(2, np.int64))
    assert env.copies == copies
    env.close()
    assert last.shape == (2, 3)  # still there


def test_modules_that_are_imported_late_are_listed_and_can_be_shared() -> None:
    def late() -> Any:
        import xml.dom.minidom  # noqa: F401

        return Walk()

    env = LightVecEnv([late, late], workers=2)
    assert "xml.dom.minidom" in env.late_imports
    env.close()
    env = LightVecEnv([late, late], workers=2, preload=["xml.dom.minidom"])
    assert env.late_imports == []
    env.close()


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[VecEnv, VecEnv]]:
    pair = DummyVecEnv(walks(4, "dict")), LightVecEnv(walks(4, "dict"), workers=2)
    yield pair
    for env in pair:
        env.close()


chosen = st.none() | st.integers(0, 3) | st.lists(st.integers(0, 3), max_size=5)
calls = st.one_of(
    st.tuples(st.just("step"), st.lists(st.integers(0, 3), min_size=4, max_size=4)),
    st.tuples(st.just("reset"), st.none() | st.integers(0, 2**31)),
    st.tuples(st.just("get"), chosen),
    st.tuples(st.just("set"), chosen, st.integers()),
    st.tuples(st.just("call"), chosen, st.integers(0, 9)),
    st.tuples(st.just("hold"), st.integers(0, 6)),
)


@settings(max_examples=30)
@given(plan=st.lists(calls, max_size=25), seed=st.integers(0, 2**31))
def test_any_order_of_calls_gives_what_dummy_gives(
    both: tuple[VecEnv, VecEnv], plan: list[Any], seed: int
) -> None:
    told: list[list[Any]] = []
    for env in both:
        env.seed(seed)
        env.set_attr("level", 0)
        seen, copies, keep = [env.reset()], [], 2
        copies = [copy.deepcopy(seen[0])]
        found: list[Any] = []
        for what, *given_ in plan:
            if what == "step":
                obs, rewards, dones, infos = env.step(np.array(given_[0]))
                seen, copies = [*seen, obs][-keep:], [*copies, copy.deepcopy(obs)][-keep:]
                found.append((copies[-1:], rewards.astype(np.float32), dones, list(infos)))
            elif what == "reset":
                env.seed(given_[0]) if given_[0] is not None else env.seed(1)
                found.append((copy.deepcopy(env.reset()), list(env.reset_infos)))
            elif what == "get":
                found.append(env.get_attr("level", given_[0]))
            elif what == "set":
                env.env_method("__setattr__", "level", given_[1], indices=given_[0])
            elif what == "call":
                found.append(env.env_method("add", given_[1], indices=given_[0]))
            else:
                keep = given_[0] + 1
            assert same(seen, copies)
        told.append(found)
    assert same(told[0], told[1])


def test_envs_that_the_script_registered_are_known_to_workers() -> None:
    walk: Any = Walk  # its arguments are more exact than those of a maker
    gymnasium.register("TestWalk-v0", entry_point=walk)
    try:
        env = make_vec_env("TestWalk-v0", n_envs=2, vec_env_cls=LightVecEnv)
        assert np.asarray(env.reset()).shape == (2, 3)
        env.close()
    finally:
        del gymnasium.registry["TestWalk-v0"]
