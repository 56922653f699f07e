"""What envs build alike is built once: functions, classes, arguments, and who may write."""

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from memfit.dropins import build_once
from memfit.dropins.sharing.once import things_built
from memfit.errors import UsageError

GAME = """
import numpy as np

class Graph:
    def __init__(self, level, *, wide=False):
        self.level = level
        self.edges = {"ends": [np.zeros((4, 2 + wide))]}

class Larger(Graph):
    pass

def picture(level):
    return np.full((8, 8), level)
"""
IMPORTER = "from game_of_tests import picture as drawn"


@pytest.fixture
def game() -> Iterator[Any]:
    """A module with builders, and another that has imported one of them by its name."""
    made = ModuleType("game_of_tests")
    sys.modules["game_of_tests"] = made
    exec(GAME, made.__dict__)
    other = ModuleType("importer_of_tests")
    sys.modules["importer_of_tests"] = other
    exec(IMPORTER, other.__dict__)
    made.__dict__["other"] = other
    yield made
    from memfit.dropins.sharing import once

    for name in [name for name in once._made if name.startswith("game_of_tests:")]:
        once._made.pop(name)
    del sys.modules["game_of_tests"], sys.modules["importer_of_tests"]


def test_a_function_gives_the_same_array_for_the_same_arguments(game: Any) -> None:
    build_once("game_of_tests:picture")
    assert game.picture(3) is game.picture(3) is game.other.drawn(3)
    assert (game.picture(4) == 4).all()
    assert things_built("game_of_tests:picture") == 2


def test_a_class_stays_the_same_class(game: Any) -> None:
    kind = game.Graph
    build_once("game_of_tests:Graph")
    one, same, other = kind("a"), game.Graph("a"), kind("a", wide=True)
    assert one is same and isinstance(one, kind) and one is not other
    assert other.edges["ends"][0].shape == (4, 3)
    assert game.Larger("a") is not game.Larger("a")  # what inherits from it builds as before


def test_nobody_can_write_to_its_arrays(game: Any) -> None:
    build_once("game_of_tests:Graph")
    with pytest.raises(ValueError, match="read-only"):
        game.Graph("a").edges["ends"][0][0, 0] = 1


def test_twice_is_as_once(game: Any) -> None:
    build_once("game_of_tests:picture")
    first = game.picture(3)
    build_once("game_of_tests:picture")
    assert game.picture(3) is first


def test_what_pickle_cannot_store_is_built_as_before(game: Any) -> None:
    build_once("game_of_tests:Graph")
    assert game.Graph(lambda: 1) is not game.Graph(lambda: 1)


class _Own:
    def __new__(cls) -> "_Own":
        return object.__new__(cls)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("picture", "module:name"),
        ("no_such_module:picture", "No module"),
        ("game_of_tests:nothing", "no attribute"),
        ("game_of_tests:np", "no function and no class"),
        (f"{__name__}:_Own", "in its own way"),
    ],
)
def test_bad_names_are_refused(game: Any, name: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        build_once(name)
    assert np.zeros(1).flags.writeable
