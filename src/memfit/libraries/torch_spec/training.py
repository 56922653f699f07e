"""Plain torch trainings, driven: networks and arrays as described, at any size."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from memfit.errors import SpecError, one_line
from memfit.libraries.driven import DrivenTraining
from memfit.libraries.torch_spec.program import TorchNetworks
from memfit.model import RunSpec, phase_of
from memfit.model.training import FORWARD_DONE, HeldArray, Mark, Work

FEW_STEPS = 4  # of a rollout that keeps nothing of them


class TorchTraining(DrivenTraining):
    """A run of networks and arrays.

    Its networks are the user's: whatever they raise, the run itself would raise.
    """

    running_its_own = True

    def __init__(self, networks: TorchNetworks, *, described: bool = False) -> None:
        self.networks = networks
        self.described = described
        self.held: dict[Any, Any] = {}  # plays the part of a script's local variables
        self.arrays: dict[str, list[Any]] = {}
        self.graphs: list[Any] = []

    def facts(self) -> RunSpec:
        return replace(self.networks.facts, networks=self.networks.networks())

    def tensors(self) -> Iterable[Any]:
        return self.networks.tensors()

    def drop_gradients(self) -> None:
        self.held.clear()
        super().drop_gradients()

    def forward(self, samples: int) -> object:
        return self.networks.loss_of(samples)

    def rollout_step(self, samples: int) -> object:
        with self._refused():
            return self.networks.rollout_step(samples, self.held)

    @contextmanager
    def _refused(self) -> Iterator[None]:
        """Whatever networks raise that a spec describes, is the spec's."""
        try:
            yield
        except Exception as error:
            if not self.described:
                raise
            raise SpecError(f"its networks do not run: {one_line(error)}") from error

    def collect(self, work: Work) -> None:
        if not work.rehearsal:
            return
        sizes = self.sizes(work.knobs)
        if not self.arrays:
            self._make(sizes.arrays, "build")
        self._make(sizes.arrays, "rollout")
        if not sizes.steps:
            return
        kept: list[Any] = []
        self.graphs.append(kept)
        times = sizes.steps if sizes.records_gradients else min(sizes.steps, FEW_STEPS)
        kept.extend(self.rollout_step(sizes.collected) for _ in range(times))

    def _make(self, arrays: Iterable[HeldArray], phase: str) -> None:
        """Every array whose life begins in this phase, written in full."""
        import numpy as np

        for array in arrays:
            if phase_of(array.phases[0]) != phase:
                continue
            if phase != "update":  # what an update makes is there before the old one goes
                self.arrays.pop(array.name, None)
            size = array.bytes // array.pieces
            self.arrays[array.name] = [np.ones(size, np.uint8) for _ in range(array.pieces)]

    def update(self, work: Work, mark: Mark) -> None:
        keeps = self.networks.facts.update.keeps_last_graph
        if work.rehearsal:
            self._make(self.sizes(work.knobs).arrays, "update")

        def forward_done() -> None:
            mark(FORWARD_DONE)
            self._drop_graphs(leave=1)

        for number in range(work.minibatches):
            if number and time.perf_counter() > work.deadline:
                break
            with self._refused():
                self.networks.update(work.batch, self.held, forward_done)
        if not keeps:
            self._drop_graphs(leave=0)

    def _drop_graphs(self, leave: int) -> None:
        while len(self.graphs) > leave:
            self.graphs.pop(0)
