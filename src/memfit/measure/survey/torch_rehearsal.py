"""Rehearse a plain torch training at its real size, and read its peaks from the kernel.

Runs in a disposable child of its own, which nothing has disturbed before: a few iterations of the
run's rollout and update, with its arrays written in full.
"""

from __future__ import annotations

import time
from typing import Any

from memfit.measure.kernel.proc import PeakMeter
from memfit.measure.survey.cycle import MOST_MINIBATCHES, Array
from memfit.measure.survey.torch_survey import Sizes

ITERATIONS = 3
MOST_ITERATIONS = 8


class TorchRehearsal:
    """Rehearses one program at one or more sizes, the smallest first."""

    def __init__(self, program: Any, seconds: float) -> None:
        self.program = program
        self.update = program.facts.update
        self.meter = PeakMeter()
        self.started = time.perf_counter()
        self.deadline = self.started + seconds
        self.graphs: list[Any] = []

    def run(self, sizes: Sizes) -> dict[str, int]:
        """The peak of each phase at this size."""
        peaks: dict[str, int] = {}
        held: dict[Any, Any] = {}
        arrays = {"build": _make(sizes, "build"), "rollout": [], "update": []}
        iteration = 0
        self.meter.start()
        while self._more(iteration):
            if sizes.steps or any("rollout" in a.phases for a in sizes.arrays):
                arrays["rollout"] = []
                arrays["rollout"] = _make(sizes, "rollout")
                self._collect(sizes, held)
                self._read("rollout", peaks)
            arrays["update"] = _make(sizes, "update")
            self._learn(sizes, held)
            self._read("update", peaks)
            iteration += 1
        return peaks

    def _collect(self, sizes: Sizes, held: dict[Any, Any]) -> None:
        kept: list[Any] = []
        self.graphs.append(kept)
        times = sizes.steps if self.update.records_gradients else min(sizes.steps, 4)
        kept.extend(self.program.rollout_step(sizes.rollout, held) for _ in range(times))

    def _learn(self, sizes: Sizes, held: dict[Any, Any]) -> None:
        self.program.forward_done = lambda: self._drop_graphs(leave=1)
        try:
            for number in range(min(sizes.minibatches, MOST_MINIBATCHES)):
                if number and time.perf_counter() > self.deadline:
                    break
                self.program.update(sizes.width, held)
        finally:
            self.program.forward_done = None
        if not self.update.keeps_last_graph:
            self._drop_graphs(leave=0)

    def _drop_graphs(self, leave: int) -> None:
        while len(self.graphs) > leave:
            self.graphs.pop(0)

    def _more(self, iteration: int) -> bool:
        if iteration < ITERATIONS:
            return iteration < 2 or time.perf_counter() < self.deadline
        half = self.started + (self.deadline - self.started) / 2
        return iteration < MOST_ITERATIONS and time.perf_counter() < half

    def _read(self, phase: str, peaks: dict[str, int]) -> None:
        peaks[phase] = max(peaks.get(phase, 0), self.meter.peak())
        self.meter.start()


def _make(sizes: Sizes, phase: str) -> list[Any]:
    """Every array whose life begins in this phase, written in full."""
    return [piece for a in sizes.arrays if a.phases[0] == phase for piece in _pieces(a)]


def _pieces(array: Array) -> list[Any]:
    import numpy as np

    return [np.ones(array.bytes // array.pieces, dtype=np.uint8) for _ in range(array.pieces)]
