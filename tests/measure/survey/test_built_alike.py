"""Two envs are built and stepped: what both built alike is told, and what they change is not."""

import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from memfit.measure.survey import built_alike as module
from memfit.measure.survey.built_alike import BuiltAlike, built_alike

SIZE = 100_000


class Graph:
    def __init__(self, level: str) -> None:
        self.level = level
        self.nodes = np.arange(SIZE)


class World:
    def __init__(self, level: str) -> None:
        self.places = np.zeros(SIZE)


class Wide:
    def __init__(self) -> None:
        self.inner = picture("wide")


def picture(level: str) -> Any:
    return np.full(SIZE, len(level))


def noise(level: str) -> Any:
    return np.random.default_rng().random(SIZE)


class Env(gymnasium.Env[Any, Any]):
    """Keeps one of these things; the world is changed by each step."""

    observation_space = spaces.Box(0, 1, (1,))
    action_space = spaces.Discrete(2)

    def __init__(self, what: Any) -> None:
        self.thing = what() if what is Wide else what("level-1")
        self.sum = float(picture("else").sum())  # made, and not kept

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if isinstance(self.thing, World):
            self.thing.places[0] += 1
        return np.zeros(1, np.float32), 0.0, False, False, {}


def found(what: Any) -> BuiltAlike:
    return built_alike(lambda: Env(what))


def test_a_graph_that_each_env_builds_is_told_with_its_size() -> None:
    alike = found(Graph)
    assert alike.names == (f"{__name__}:Graph",)
    assert SIZE * 8 <= alike.bytes <= SIZE * 8 + 1000
    assert sys.getprofile() is None


def test_of_builders_within_each_other_the_outer_is_told() -> None:
    # `picture` is also called where nobody keeps what it gives.
    assert found(Wide).names == (f"{__name__}:Wide",)


@pytest.mark.parametrize("what", [World, noise, picture])
def test_what_changes_differs_or_is_let_go_is_not_told(what: Any) -> None:
    assert found(what) == BuiltAlike()


def test_an_env_that_fails_tells_of_nothing() -> None:
    def broken() -> Any:
        raise RuntimeError("no display")

    assert built_alike(broken) == BuiltAlike()
    assert sys.getprofile() is None


def test_an_env_that_takes_long_is_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LONGEST", -1.0)
    built = []

    def make() -> Any:
        built.append(Env(Graph))
        return built[-1]

    assert built_alike(make) == BuiltAlike()
    assert len(built) == 1
