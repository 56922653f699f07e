"""Where runs are made: here, or on the nodes of a cluster that an engine knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from memfit.errors import UsageError
from memfit.model import Outcome, Point

if TYPE_CHECKING:
    from collections.abc import Callable

    from memfit.integrations.ray.remote_runs import Nodes

ENGINES = ("ray",)


class Runner(Protocol):
    """Something that is run at one value of a setting."""

    def run(
        self, value: int, *, memory: int, timeout: float, alive: Callable[[int], None]
    ) -> Point:
        """One run, to its end or to a limit."""


@contextmanager
def nodes_of(engine: str, limit: int | None) -> Iterator[Nodes | None]:
    """The nodes of an engine's cluster; None where runs are made here."""
    if not engine:
        yield None
        return
    if engine not in ENGINES:
        raise UsageError(f"--engine {engine}: memfit knows {', '.join(ENGINES)}. Choose one")
    from memfit.integrations.ray.remote_runs import cluster_nodes

    with cluster_nodes(limit) as nodes:
        yield nodes


def points_on(
    nodes: Nodes, runner: Runner, values: Sequence[int], known: Mapping[int, Point], timeout: float
) -> Iterator[Point]:
    """A point for each value, as they are done; none above the smallest that does not fit."""
    failed = [value for value, point in known.items() if point.outcome is not Outcome.DONE]
    end = min(failed, default=max(values) + 1)
    wanted = [value for value in values if value not in known and value < end]
    waiting = {nodes.start(_point, runner, value, nodes.memory, timeout): value for value in wanted}
    try:
        while waiting:
            done = nodes.next_done(list(waiting))
            value = waiting.pop(done)
            point = nodes.answer(done)
            yield point
            if point.outcome is not Outcome.DONE:
                larger = [started for started, other in waiting.items() if other > value]
                nodes.cancel(larger)
                waiting = {s: other for s, other in waiting.items() if s not in larger}
    finally:
        nodes.cancel(list(waiting))


def _point(runner: Runner, value: int, memory: int, timeout: float) -> Point:
    return runner.run(value, memory=memory, timeout=timeout, alive=lambda peak: None)
