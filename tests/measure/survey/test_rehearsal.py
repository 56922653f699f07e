"""Rehearsals of trainings that only note what they are asked to do."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memfit.measure.survey import rehearsal
from memfit.measure.survey.rehearsal import MOST_ITERATIONS, Rehearsal
from memfit.model import ArraySpec, RunSpec, WorkerReading
from memfit.model.training import Beside, Mark, Work
from memfit.units import MIB
from tests.measure.survey.trainings import Noted, ScriptedMeter, spec_of

LONG = 600.0  # seconds: more than any of these takes


def collecting(spec: RunSpec) -> RunSpec:
    array = ArraySpec(name="a", shape=(1,), dtype="u1", itemsize=1, phases=("rollout", "update"))
    return replace(spec, arrays=(array,))


@pytest.mark.parametrize(
    ("iterations", "seconds", "expected"),
    [
        (1, LONG, 1),
        (2, LONG, 2),
        (5, LONG, 5),
        (100, LONG, MOST_ITERATIONS),
        (0, LONG, MOST_ITERATIONS),  # without end
        (0, 0.0, 2),  # what follows another update has to be seen
        (1, 0.0, 1),
    ],
)
def test_so_many_iterations(iterations: int, seconds: float, expected: int, tmp_path: Path) -> None:
    training = Noted(spec_of(iterations=iterations))
    Rehearsal(training, tmp_path, seconds).run(training.spec.knobs)
    assert training.done == ["collect", "update"] * expected


def test_after_half_of_the_time_no_fourth_iteration_begins(tmp_path: Path) -> None:
    class Slow(Noted):
        def collect(self, work: Work) -> None:
            super().collect(work)
            if len(self.works) == 2:  # in the third
                time.sleep(max(0.0, work.deadline - time.perf_counter()) / 2 + 0.001)

    training = Slow(spec_of())
    Rehearsal(training, tmp_path, 1.0).run(training.spec.knobs)
    assert len(training.works) == 3


def test_the_work_is_that_of_the_run(tmp_path: Path) -> None:
    training = Noted(spec_of(batch="batch_size * 2"))
    knobs = {"batch_size": 40, "steps": 3}
    before = time.perf_counter()
    Rehearsal(training, tmp_path, 30.0).run(knobs)
    work = training.works[0]
    assert (work.batch, work.knobs, work.rehearsal) == (40, knobs, True)
    assert (work.minibatches, work.epochs) == (2, 2)  # the run has no third
    assert before + 30 <= work.deadline <= time.perf_counter() + 30
    many = Noted(spec_of(batch="batch_size * 99"))
    Rehearsal(many, tmp_path, 30.0).run(knobs)
    assert many.works[0].minibatches == 3


def rehearsed(
    monkeypatch: pytest.MonkeyPatch, training: Noted, scratch: Path, *peaks: int
) -> dict[str, int]:
    monkeypatch.setattr(rehearsal, "PeakMeter", lambda: ScriptedMeter(*peaks))
    return Rehearsal(training, scratch, LONG).run(training.spec.knobs)


def test_each_phase_has_its_largest_peak(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    training = Noted(collecting(spec_of(iterations=2)))
    found = rehearsed(monkeypatch, training, tmp_path, 30, 70, 40, 60)
    assert found == {"rollout": 40, "update": 70}


def test_a_run_that_does_not_collect_has_no_rollout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    training = Noted(spec_of(iterations=2))
    assert rehearsed(monkeypatch, training, tmp_path, 50, 55) == {"update": 55}


def test_evaluation_and_saving_come_last(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done: list[object] = []
    beside = Beside(
        evaluate=lambda steps, seconds: done.append((steps, seconds)),
        save=lambda folder, replay: done.append((folder, replay)),
        saves_replay=True,
    )
    training = Noted(spec_of(iterations=1), beside)
    found = rehearsed(monkeypatch, training, tmp_path, 50, 80, 90)
    assert found == {"update": 50, "evaluate": 80, "save": 90}
    assert done == [(64, 1.0), (tmp_path, True)]


def test_evaluation_and_saving_come_between_updates_too(tmp_path: Path) -> None:
    training = Noted(spec_of(iterations=3))
    training.around = Beside(evaluate=lambda steps, seconds: training.done.append("evaluate"))
    Rehearsal(training, tmp_path, LONG).run(training.spec.knobs)
    update = ["collect", "update"]
    assert training.done == [*update, "evaluate", *update, *update, "evaluate"]


def test_workers_are_taken_off_every_phase(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def read(workers: tuple[int, ...]) -> WorkerReading:
        assert workers == (11, 12)
        return WorkerReading(started=2, each_bytes=10, shared_bytes=3)

    monkeypatch.setattr(rehearsal, "read_workers", read)
    training = Noted(collecting(spec_of(iterations=1)), Beside(workers=(11, 12)))
    found = rehearsed(monkeypatch, training, tmp_path, 130, 170)
    assert found == {"rollout": 130 - 23, "update": 170 - 23}


def test_peaks_are_the_kernels(tmp_path: Path) -> None:
    """A rollout holds 32 MiB, and each update 64 MiB more for a while."""

    class Allocating(Noted):
        def collect(self, work: Work) -> None:
            self.rows = np.ones(32 * MIB, np.uint8)

        def update(self, work: Work, mark: Mark) -> None:
            np.ones(64 * MIB, np.uint8)

    training = Allocating(collecting(spec_of(iterations=1)))
    begun = Rehearsal(training, tmp_path, LONG)
    before = begun.meter.now()
    found = begun.run(training.spec.knobs)
    assert found["rollout"] - before == pytest.approx(32 * MIB, abs=4 * MIB)
    assert found["update"] - before == pytest.approx(96 * MIB, abs=4 * MIB)
