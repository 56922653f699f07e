"""Where `optimize` makes its runs: in a child here, or in children on the nodes of a cluster."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from memfit.api.engines import nodes_of
from memfit.measure.children import sandbox
from memfit.measure.children.user_cache import SweepCache
from memfit.model.job import Job
from memfit.model.json_loader import from_json, to_json

if TYPE_CHECKING:
    from memfit.integrations.ray.remote_runs import Nodes

_TIMES = "runs were made on nodes of a cluster: times beside each other are of different nodes"


class Place(Protocol):
    """Where a job is run within so much memory."""

    memory: int
    notes: tuple[str, ...]

    def run(self, job: Job, timeout: float) -> sandbox.Ended:
        """One run, to its end."""

    def ahead(self, jobs: Sequence[Job], timeout: float) -> None:
        """Begin runs that will be asked for."""


class Here:
    """A child of this process; one at a time, so that none slows another."""

    notes: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.memory = sandbox.room()

    def run(self, job: Job, timeout: float) -> sandbox.Ended:
        return sandbox.run(job, timeout=timeout, memory=self.memory)

    def ahead(self, jobs: Sequence[Job], timeout: float) -> None:
        """Nothing: they come one after another."""


class OnNodes:
    """Children on the nodes; what was measured is kept until all is done."""

    notes: tuple[str, ...] = (_TIMES,)

    def __init__(self, nodes: Nodes, job: Job, facts: dict[str, Any]) -> None:
        self.memory = nodes.memory
        self._nodes = nodes
        self.kept = SweepCache({**facts, "job": _key(job), "memory": nodes.memory})
        self._known: dict[str, list[sandbox.Ended]] = {}
        for told in self.kept:
            ended = from_json(sandbox.Ended, told["ended"])
            self._known.setdefault(told["job"], []).append(ended)
        self._started: dict[str, list[Any]] = {}

    def run(self, job: Job, timeout: float) -> sandbox.Ended:
        key = _key(job)
        if known := self._known.get(key):
            return known.pop(0)
        waiting = self._started.get(key)
        started = waiting.pop(0) if waiting else self._start(job, timeout)
        try:
            ended: sandbox.Ended = self._nodes.answer(started)
        finally:
            self._nodes.cancel([started])
        self.kept.add({"job": key, "ended": to_json(ended)})
        return ended

    def ahead(self, jobs: Sequence[Job], timeout: float) -> None:
        for job in jobs:
            if not self._known.get(_key(job)):
                self._started.setdefault(_key(job), []).append(self._start(job, timeout))

    def end(self) -> None:
        """Have nothing go on that nobody asks for any more."""
        self._nodes.cancel([started for waiting in self._started.values() for started in waiting])

    def _start(self, job: Job, timeout: float) -> Any:
        return self._nodes.start(sandbox.run, job, timeout=timeout, memory=self.memory)


@contextmanager
def place_of(engine: str, job: Job, timeout: float) -> Iterator[Place]:
    """Where runs of this job are made."""
    with nodes_of(engine, None) as nodes:
        if nodes is None:
            yield Here()
            return
        place = OnNodes(nodes, job, {"in": os.getcwd(), "timeout": timeout})  # noqa: PTH109
        try:
            yield place
        finally:
            place.end()
        place.kept.forget()


def _key(job: Job) -> str:
    return json.dumps(to_json(job), sort_keys=True)
