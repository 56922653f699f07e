"""Rehearses a run at its real size, and reads its peaks from the kernel.

Runs in a disposable child of its own, which nothing has disturbed before: a few iterations of the
run's own collecting and updating with buffers touched in full, and evaluation and saving where the
run has them: after the first iteration, and at the end.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from memfit.measure.kernel.proc import PeakMeter
from memfit.measure.survey.run_processes import read_others, read_workers
from memfit.model.training import Driven, Work, no_mark

# A rehearsal begins no iteration after half of this, and no minibatch after all of it: peaks have
# hardly risen after three iterations, and a person waits for the answer.
SECONDS = 9.0
ITERATIONS = 3
MOST_ITERATIONS = 8
MINIBATCHES = 3  # per epoch: the first, one that follows another, and the last of them
EPOCHS = 2
ENV_STEPS, ENV_SECONDS = 16, 1.0
EVALUATED_STEPS, EVALUATED_SECONDS = 64, 1.0


class Rehearsal:
    """Rehearses one training at one or more sizes, the smallest first."""

    def __init__(self, training: Driven, scratch: Path, seconds: float) -> None:
        self.training = training
        self.scratch = scratch
        self.meter = PeakMeter()
        self.started = time.perf_counter()
        self.deadline = self.started + seconds

    def run(self, knobs: Mapping[str, int]) -> dict[str, int]:
        """The peak of each phase at these knobs, workers apart."""
        peaks: dict[str, int] = {}
        sizes = self.training.sizes(knobs)
        work = Work(
            batch=sizes.width,
            knobs=knobs,
            rehearsal=True,
            minibatches=min(MINIBATCHES, sizes.minibatches),
            epochs=EPOCHS,
            env_steps=ENV_STEPS,
            env_seconds=ENV_SECONDS,
            deadline=self.deadline,
        )
        iteration = 0
        self.meter.start()
        while self._more(iteration, sizes.iterations or MOST_ITERATIONS):
            if iteration == 1:  # small blocks that it leaves lie in the way of later updates
                self._beside(peaks)
            self.training.collect(work)
            if sizes.collects:
                self._read("rollout", peaks)
            self.training.update(work, no_mark)
            self._read("update", peaks)
            iteration += 1
        self._beside(peaks)
        workers = self.training.beside().workers
        others = sum(group.private_bytes for group in read_others(workers))
        others += read_workers(workers).started_bytes if workers else 0
        return {phase: peak - others for phase, peak in peaks.items()}

    def _beside(self, peaks: dict[str, int]) -> None:
        beside = self.training.beside()
        self.meter.start()
        if beside.evaluate is not None:
            beside.evaluate(EVALUATED_STEPS, EVALUATED_SECONDS)
            self._read("evaluate", peaks)
        if beside.save is not None:
            beside.save(self.scratch, beside.saves_replay)
            self._read("save", peaks)

    def _read(self, phase: str, peaks: dict[str, int]) -> None:
        peaks[phase] = max(peaks.get(phase, 0), self.meter.peak())
        self.meter.start()

    def _more(self, iteration: int, planned: int) -> bool:
        if iteration >= planned:  # not more iterations than the run has
            return False
        if iteration < ITERATIONS:
            return iteration < 2 or time.perf_counter() < self.deadline
        half = self.started + (self.deadline - self.started) / 2
        return iteration < MOST_ITERATIONS and time.perf_counter() < half
