"""What is held twice, or in more bits than it needs, is found, and nothing else is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memfit.inside.array_blocks import ArrayBlocks
from memfit.inside.duplicates import duplicates
from memfit.inside.object_kinds import Kinds
from memfit.inside.pace import Interrupted, Pace
from memfit.inside.paths import Tree
from memfit.inside.seen_addresses import SeenAddresses

Arrays = dict[str, np.ndarray[Any, Any]]


def found(arrays: Arrays, seconds: float = 30.0) -> list[dict[str, Any]]:
    """The findings over some arrays, each held by its name."""
    tree, seen = Tree(), SeenAddresses()
    blocks = ArrayBlocks(Kinds(), tree)
    for name, array in arrays.items():
        assert seen.add(id(array))
        blocks.array(array, tree.top(name), seen)
    blocks.settle()
    return duplicates(blocks, Pace(lambda: False), seconds=seconds)


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(0)


def test_arrays_that_have_nothing_in_common(random: np.random.Generator) -> None:
    arrays: Arrays = {
        "a": random.standard_normal((1000, 2, 40)),
        "b": random.standard_normal((1000, 2, 40)),
        "frames": random.integers(0, 255, (300, 4, 20, 20), dtype="u1"),
        "empty": np.zeros((1000, 100)),
        "empty too": np.zeros((1000, 100)),
        "constant": np.full((1000, 100), 0.1),
    }
    assert found(arrays) == []


def test_the_same_bytes_twice(random: np.random.Generator) -> None:
    first = random.standard_normal((500, 100))
    (finding,) = found({"first": first, "second": first.copy()})
    assert finding["kind"] == "same bytes"
    assert sorted(finding["holders"]) == ["first", "second"]
    assert finding["saved_bytes"] == first.nbytes
    assert "all compared" in finding["evidence"]


def test_one_value_that_differs_is_seen(random: np.random.Generator) -> None:
    first = random.standard_normal((500, 100))
    second = first.copy()
    second[251, 33] += 1
    assert found({"first": first, "second": second}) == []


def test_one_array_within_another(random: np.random.Generator) -> None:
    outer = random.standard_normal((500, 100))
    (finding,) = found({"outer": outer, "inner": outer[100:300].copy()})
    assert finding["kind"] == "contained" and finding["holders"] == ["inner", "outer"]
    assert finding["saved_bytes"] == 200 * 100 * 8


def test_next_observations_are_observations_one_later(random: np.random.Generator) -> None:
    observations = random.standard_normal((2000, 2, 30)).astype("f4")
    following = np.roll(observations, -1, axis=0).copy()
    following[99::100] = 5.0  # ends of episodes
    (finding,) = found({"observations": observations, "next_observations": following})
    assert finding["kind"] == "shifted rows"
    assert finding["holders"] == ["next_observations", "observations"]
    assert 0.9 * following.nbytes <= finding["saved_bytes"] <= following.nbytes


def test_a_buffer_that_is_hardly_filled_is_looked_at_where_it_is(
    random: np.random.Generator,
) -> None:
    observations, following = np.zeros((2, 20_000, 4), dtype="f4")
    observations[:1500] = random.standard_normal((1500, 4))
    following[:1499] = observations[1:1500]
    observations, following = observations.copy(), following.copy()
    (finding,) = found({"observations": observations, "next_observations": following})
    assert finding["kind"] == "shifted rows"


@pytest.mark.parametrize("last", [False, True])
def test_stacked_frames(random: np.random.Generator, last: bool) -> None:
    frames = random.integers(0, 255, (303, 20, 20), dtype="u1")
    stack = np.stack([frames[k : 300 + k] for k in range(4)], axis=3 if last else 1).copy()
    (finding,) = found({"observations": stack})
    assert finding["kind"] == "repeated frames"
    assert finding["saved_bytes"] == stack.nbytes * 3 // 4


def test_windows_over_readings(random: np.random.Generator) -> None:
    readings = random.standard_normal((650, 6))
    windows = np.stack([readings[k : k + 50].ravel() for k in range(600)])
    (finding,) = found({"observations": windows})
    assert finding["kind"] == "repeated frames"
    assert finding["saved_bytes"] == windows.nbytes * 294 // 300
    assert "moved by 6" in finding["evidence"]


def test_a_picture_that_stands_still_is_no_stack(random: np.random.Generator) -> None:
    frame = random.integers(0, 255, (1, 4, 20, 20), dtype="u1")
    assert found({"observations": np.repeat(frame, 300, axis=0).copy()}) == []


@pytest.mark.parametrize(
    ("given", "narrower"),
    [("f8", "uint8"), ("f4", "uint8"), ("i8", "uint8"), ("i4", "uint8")],
)
def test_whole_numbers_in_a_wide_type(
    random: np.random.Generator, given: str, narrower: str
) -> None:
    values = random.integers(0, 200, (1000, 100)).astype(given)
    (finding,) = found({"observations": values})
    assert finding["kind"] == "narrower type" and narrower in finding["evidence"]
    assert finding["saved_bytes"] == values.nbytes - 100_000


def test_float64_of_float32_sensors(random: np.random.Generator) -> None:
    values = random.standard_normal((1000, 100)).astype("f4").astype("f8")
    values[3, 4] = np.nan
    (finding,) = found({"observations": values})
    assert "float32" in finding["evidence"] and finding["saved_bytes"] == values.nbytes // 2


def test_one_value_that_does_not_fit_is_seen(random: np.random.Generator) -> None:
    values = random.integers(0, 200, (1000, 100)).astype("f8")
    values[777, 7] = 0.1
    assert found({"observations": values}) == []


def test_without_time_nothing_is_claimed(random: np.random.Generator) -> None:
    first = random.standard_normal((500, 100))
    assert found({"first": first, "second": first.copy()}, seconds=0.0) == []


def test_it_stops_when_told_to() -> None:
    pace = Pace(lambda: True)

    def work() -> None:
        while True:
            pace.rest()

    with pytest.raises(Interrupted):
        work()
