"""Rehearse a run at its real size, and read its peaks from the kernel.

Runs in a disposable child of its own, which nothing has disturbed before: a few iterations of the
run's own collecting and updating with buffers touched in full, then evaluation and saving where
the run has them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memfit.measure.kernel.proc import PeakMeter
from memfit.measure.survey.rehearsal import (
    Sb3Rehearsal,
    Work,
    arrays_of,
    repeat_episodes,
    repeat_rows,
    repeat_windows,
)
from memfit.measure.survey.surroundings import read_workers

ITERATIONS = 3
MOST_ITERATIONS = 8
ENV_STEPS = 16


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How large a rehearsal is: the minibatch, and the rows of the buffer that are written."""

    batch: int
    rows: int


class FullSize:
    """Rehearses one model at one or more scales, the smallest first."""

    def __init__(self, model: Any, rehearsal: Sb3Rehearsal, scratch: Path, seconds: float) -> None:
        self.model = model
        self.rehearsal = rehearsal
        self.scratch = scratch
        self.meter = PeakMeter()
        self.deadline = time.perf_counter() + seconds
        self.started = time.perf_counter()
        rehearsal.deadline = self.deadline
        self.planned = MOST_ITERATIONS  # not more iterations than the run has
        if rehearsal.on_policy:
            rollout = int(model.n_steps) * int(model.n_envs)
            self.planned = max(1, -(-int(model._total_timesteps) // rollout))

    def run(self, scale: Scale, eval_env: Any, saves: str) -> dict[str, int]:
        """The peak of each phase at this scale, workers apart."""
        peaks: dict[str, int] = {}
        if self.rehearsal.on_policy:
            self._on_policy(scale, peaks)
        else:
            self._off_policy(scale, peaks)
        if eval_env is not None:
            self._evaluate(eval_env, peaks)
        if saves:
            self._save(saves, peaks)
        workers = self._workers()
        return {phase: peak - workers for phase, peak in peaks.items()}

    def _workers(self) -> int:
        processes = getattr(self.model.env.unwrapped, "processes", ())
        return read_workers(processes).started_bytes if processes else 0

    def _read(self, phase: str, peaks: dict[str, int]) -> None:
        peaks[phase] = max(peaks.get(phase, 0), self.meter.peak())
        self.meter.start()

    def _more(self, iteration: int) -> bool:
        if iteration >= self.planned:
            return False
        if iteration < ITERATIONS:
            return iteration < 2 or time.perf_counter() < self.deadline
        half = self.started + (self.deadline - self.started) / 2
        return iteration < MOST_ITERATIONS and time.perf_counter() < half

    def _on_policy(self, scale: Scale, peaks: dict[str, int]) -> None:
        model = self.model
        buffer = model.rollout_buffer
        if scale.rows != buffer.buffer_size:
            buffer = model.rollout_buffer = self.rehearsal.small_rollout(scale.rows)
        recurrent = hasattr(model, "_last_lstm_states")
        work = Work(
            batch=scale.batch,
            rows=scale.rows,
            env_steps=scale.rows if recurrent else ENV_STEPS,
            env_seconds=3.0 if recurrent else 1.0,
        )
        iteration = 0
        self.meter.start()
        while self._more(iteration):
            self.rehearsal.collect(buffer, work)
            self._read("rollout", peaks)
            self.rehearsal.update(buffer, work)
            self._read("update", peaks)
            iteration += 1

    def _off_policy(self, scale: Scale, peaks: dict[str, int]) -> None:
        buffer = self.model.replay_buffer
        self.rehearsal.step_env(ENV_STEPS, seconds=1.0)
        filled = max(1, buffer.buffer_size if buffer.full else buffer.pos)
        repeat_rows(arrays_of(buffer, self.rehearsal.arrays), filled, scale.rows)
        repeat_windows(buffer, filled, scale.rows)
        repeat_episodes(buffer, filled, scale.rows)
        work = Work(batch=scale.batch, rows=scale.rows, env_steps=4, env_seconds=0.3)
        iteration = 0
        self.meter.start()
        while self._more(iteration):
            self.rehearsal.step_env(4, seconds=0.3)
            self._read("rollout", peaks)
            self.rehearsal.update(None, work)
            self._read("update", peaks)
            iteration += 1

    def _evaluate(self, eval_env: Any, peaks: dict[str, int]) -> None:
        self.meter.start()
        observations = eval_env.reset()
        until = time.perf_counter() + 1.0
        for _ in range(64):
            actions, _ = self.model.predict(observations, deterministic=True)
            observations, _, _, _ = eval_env.step(actions)
            if time.perf_counter() > until:
                break
        self._read("evaluate", peaks)

    def _save(self, saves: str, peaks: dict[str, int]) -> None:
        self.meter.start()
        target = self.scratch / "saved"
        self.model.save(target.with_suffix(".zip"))
        if saves == "replay":
            self.model.save_replay_buffer(target.with_suffix(".pkl"))
        self._read("save", peaks)
        for file in self.scratch.glob("saved*"):
            file.unlink()
