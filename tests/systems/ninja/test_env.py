"""The environment keeps Gymnasium's promises, and observes the same however memory is kept."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from memfit.errors import UsageError
from memfit.systems.ninja.env import NinjaEnv
from memfit.systems.ninja.graph import GRAPH
from memfit.systems.ninja.settings import EnvironmentConfig, Memory
from memfit.systems.ninja.sizes import ALL_ENTITIES, Observation

DESCRIBED, FITTED = EnvironmentConfig.as_described, EnvironmentConfig.for_training
PARALLEL = EnvironmentConfig.for_parallel_training


def nbytes(observation: Observation) -> int:
    return sum(array.nbytes for array in observation.values())


def assert_same(one: Observation, other: Observation) -> None:
    """Equal to the bit; float64 is first narrowed to float32, which is the documented change."""
    assert one.keys() == other.keys()
    for name in one:
        first, second = one[name], other[name]
        if first.dtype != second.dtype:
            assert name == "game_state"
            first, second = first.astype(np.float32), second.astype(np.float32)
        assert first.dtype == second.dtype
        assert np.array_equal(first, second), name


@pytest.mark.parametrize(
    "config",
    [
        FITTED(),
        FITTED(levels=("climb", "minefield"), graphs="number", entities="all"),
        FITTED(reachability=False),
        DESCRIBED(),
        DESCRIBED(graphs="arrays"),
    ],
    ids=["fitted", "numbers", "few", "described", "graphs"],
)
def test_the_env_checker_finds_nothing(config: EnvironmentConfig) -> None:
    check_env(NinjaEnv(config, render_mode="rgb_array"), skip_render_check=True)


def test_observations_have_the_measured_sizes() -> None:
    plain, _ = NinjaEnv(DESCRIBED()).reset(seed=0)
    assert {name: (array.shape, str(array.dtype)) for name, array in plain.items()} == {
        "player_frame": ((84, 84, 1), "uint8"),
        "global_view": ((176, 100, 1), "uint8"),
        "game_state": ((30,), "float64"),
        "entity_states": ((4,), "float32"),
        "reachability": ((10,), "float32"),
    }
    assert nbytes(plain) == 24_952
    graphs, _ = NinjaEnv(DESCRIBED(graphs="arrays")).reset(seed=0)
    assert nbytes(graphs) == 8_714_040
    assert graphs["graph_node_features"].shape == (15_856, 55)
    assert graphs["graph_edge_features"].shape == (126_848, 6)
    fitted, _ = NinjaEnv(FITTED()).reset(seed=0)
    assert fitted["game_state"].dtype == np.float32
    assert nbytes(fitted) == 24_952 - 120
    full, _ = NinjaEnv(FITTED(entities="all")).reset(seed=0)
    assert full["entity_states"].shape == (769,)


def test_one_seed_is_one_game() -> None:
    config = FITTED(levels=("climb", "first-steps", "generated:5"))
    one, other = NinjaEnv(config), NinjaEnv(config)
    draw = np.random.default_rng(3)
    first, second = one.reset(seed=9), other.reset(seed=9)
    assert_same(first[0], second[0])
    assert first[1] == second[1]
    for _ in range(150):
        action = draw.integers(6)
        a, b = one.step(action), other.step(action)
        assert_same(a[0], b[0])
        assert a[1:] == b[1:]
        if a[2] or a[3]:
            assert_same(one.reset()[0], other.reset()[0])


@settings(max_examples=12)
@given(
    names=st.sets(st.sampled_from(Memory.names())),
    level=st.sampled_from(["first-steps", "climb", "minefield", "generated:2"]),
    entities=st.sampled_from(["nearest", "all"]),
    seed=st.integers(0, 2**16),
)
def test_any_choice_of_changes_observes_the_same(
    names: set[str], level: str, entities: str, seed: int
) -> None:
    # Lazy graphs on both sides: building them is slow and is tested elsewhere.
    described = DESCRIBED(levels=(level,), entities=entities, memory=Memory.only("lazy_graphs"))
    changed = replace(described, memory=Memory.only("lazy_graphs", *names))
    envs = NinjaEnv(described), NinjaEnv(changed)
    assert_same(envs[0].reset(seed=seed)[0], envs[1].reset(seed=seed)[0])
    draw = np.random.default_rng(seed)
    for _ in range(12):
        action = draw.integers(6)
        one, other = (env.step(action) for env in envs)
        assert_same(one[0], other[0])
        assert one[1:4] == other[1:4]
        if one[2] or one[3]:
            assert_same(envs[0].reset()[0], envs[1].reset()[0])


def test_a_long_game_past_mines_looks_the_same() -> None:
    level = "generated:11"
    one = NinjaEnv(DESCRIBED(levels=(level,), memory=Memory.only("lazy_graphs")))
    other = NinjaEnv(FITTED(levels=(level,)))
    assert_same(one.reset(seed=0)[0], other.reset(seed=0)[0])
    draw = np.random.default_rng(1)
    action = 2
    for _ in range(150):
        if draw.random() < 0.2:
            action = int(draw.integers(6))
        a, b = one.step(action), other.step(action)
        assert_same(a[0], b[0])
        if a[2] or a[3]:
            assert_same(one.reset()[0], other.reset()[0])


def test_graphs_are_the_same_however_they_are_kept() -> None:
    described = NinjaEnv(DESCRIBED(graphs="arrays", levels=("climb",))).reset(seed=0)[0]
    fitted = NinjaEnv(FITTED(graphs="arrays", levels=("climb",))).reset(seed=0)[0]
    assert_same(described, fitted)


def test_every_step_has_arrays_of_its_own_unless_reuse_is_asked_for() -> None:
    env = NinjaEnv(FITTED())
    first, _ = env.reset(seed=0)
    kept = {name: array.copy() for name, array in first.items()}
    second = env.step(2)[0]
    assert not any(np.shares_memory(first[name], second[name]) for name in first)
    assert_same(first, kept)


def test_reused_arrays_are_a_games_own() -> None:
    """stable-baselines3 keeps the last observation of a game while it resets the environment."""
    env = NinjaEnv(PARALLEL(max_steps=3))
    first, _ = env.reset(seed=0)
    for _ in range(3):
        last, _, ended, timeout, _ = env.step(2)
        assert all(last[name] is first[name] for name in first)
    assert timeout and not ended
    kept = {name: array.copy() for name, array in last.items()}
    again, _ = env.reset()
    env.step(2)
    assert_same(last, kept)
    assert not any(np.shares_memory(last[name], again[name]) for name in last)


def test_an_episode_ends_in_time() -> None:
    env = NinjaEnv(FITTED(max_steps=5))
    env.reset(seed=0)
    ends = [env.step(0)[2:4] for _ in range(5)]
    assert ends == [(False, False)] * 4 + [(False, True)]


def test_the_picture_for_people() -> None:
    env = NinjaEnv(FITTED(), render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()
    assert picture is not None and picture.shape == (600, 1056, 3) and picture.dtype == np.uint8
    assert NinjaEnv(FITTED()).render() is None
    moving = NinjaEnv(DESCRIBED(memory=Memory.only("lazy_graphs")), render_mode="rgb_array")
    moving.reset(seed=0)
    moving.step(2)
    env.step(2)
    one, other = moving.render(), env.render()
    assert one is not None and other is not None and (one != other).any()


def test_pygame_says_nothing_and_leaves_the_surroundings_as_they_are() -> None:
    code = (
        "import os\nbefore = dict(os.environ)\nimport memfit.systems.ninja.drawing\n"
        "assert dict(os.environ) == before"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not done.stdout and not done.stderr


def test_nothing_of_a_window_or_sound_is_started() -> None:
    import pygame

    NinjaEnv(DESCRIBED(memory=Memory.only("lazy_graphs"))).reset(seed=0)
    assert not pygame.display.get_init()
    assert pygame.mixer.get_init() is None


def test_bad_configurations_are_refused() -> None:
    with pytest.raises(UsageError, match="give at least one"):
        EnvironmentConfig(levels=())
    with pytest.raises(UsageError, match="give 1 or more"):
        EnvironmentConfig(max_steps=0)
    with pytest.raises(UsageError, match="yes is not known: give none, arrays, number"):
        FITTED(graphs="yes")
    with pytest.raises(UsageError, match="no change 'magic': give some of views"):
        Memory.only("magic")
    with pytest.raises(UsageError, match="no level"):
        NinjaEnv(FITTED(levels=("nowhere",)))


def test_what_is_made_to_fit_is_safe_by_default() -> None:
    assert FITTED().memory == Memory.fitted()
    assert not FITTED().memory.reuse and PARALLEL().memory.reuse
    assert Memory.fitted(reuse=True) == Memory.only(*Memory.names())
    assert DESCRIBED().memory == Memory()
    assert ALL_ENTITIES == 769 and len(GRAPH) == 7
