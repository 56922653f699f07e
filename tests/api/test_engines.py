"""Points that are made elsewhere, side by side: which are asked for, and which are given up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from memfit.api.engines import nodes_of, points_on
from memfit.errors import UsageError
from memfit.integrations.ray.remote_runs import Nodes
from memfit.model import Outcome, Point

LIMIT = 100


class Program:
    """Holds as much as its value says."""

    def run(
        self, value: int, *, memory: int, timeout: float, alive: Callable[[int], None]
    ) -> Point:
        outcome = Outcome.DONE if value <= memory else Outcome.OUT_OF_MEMORY
        return Point(value=value, peak_bytes=value, outcome=outcome, seconds=0.0)


class InOrder:
    """Does what it is asked when it is waited for, the largest values first."""

    memory = LIMIT

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.given_up: list[int] = []

    def start(self, work: Callable[..., Point], *args: Any) -> Callable[[], Point]:
        self.asked.append(args[1])
        return lambda: work(*args)

    def next_done(self, waiting: Sequence[Callable[[], Point]]) -> Callable[[], Point]:
        return max(waiting, key=lambda started: started().value)

    def answer(self, started: Callable[[], Point]) -> Point:
        return started()

    def cancel(self, waiting: Sequence[Callable[[], Point]]) -> None:
        self.given_up += [started().value for started in waiting]


def points(nodes: InOrder, values: Sequence[int], *known: Point) -> list[int]:
    kept = {point.value: point for point in known}
    return [p.value for p in points_on(cast(Nodes, nodes), Program(), values, kept, 1.0)]


def test_all_values_are_asked_for_at_once() -> None:
    nodes = InOrder()
    assert points(nodes, [10, 20, 30]) == [30, 20, 10]
    assert nodes.asked == [10, 20, 30] and not nodes.given_up


def test_what_is_known_is_not_run_again() -> None:
    done = Point(value=20, peak_bytes=20, outcome=Outcome.DONE, seconds=0.0)
    assert points(InOrder(), [10, 20, 30], done) == [30, 10]


def test_nothing_above_the_smallest_that_does_not_fit_is_run() -> None:
    full = Point(value=20, peak_bytes=200, outcome=Outcome.OUT_OF_MEMORY, seconds=0.0)
    nodes = InOrder()
    assert points(nodes, [10, 20, 30], full) == [10] and nodes.asked == [10]


def test_larger_values_are_given_up_once_one_does_not_fit() -> None:
    class SmallestFirst(InOrder):
        def next_done(self, waiting: Sequence[Callable[[], Point]]) -> Callable[[], Point]:
            return min(waiting, key=lambda started: started().value)

    nodes = SmallestFirst()
    assert points(nodes, [50, 150, 250, 350]) == [50, 150]
    assert nodes.given_up == [250, 350]


def test_without_an_engine_there_are_no_nodes() -> None:
    with nodes_of("", None) as nodes:
        assert nodes is None
    with pytest.raises(UsageError, match="memfit knows ray"), nodes_of("dask", None):
        pass
