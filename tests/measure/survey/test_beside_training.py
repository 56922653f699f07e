"""What stands around a training, with things whose cost is known."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from memfit.measure.kernel import proc
from memfit.measure.survey import beside_training
from memfit.measure.survey.beside_training import cost_of_one, with_beside
from memfit.measure.survey.run_processes import read_workers
from memfit.model import Readings, WorkerReading
from memfit.model.training import Beside
from memfit.units import MIB

READINGS = Readings(stopped=1, warm=2, unit=3)


def held(size: int) -> object:
    """Resident memory in a mapping of its own: malloc may have free blocks of this size."""
    array = np.frombuffer(mmap.mmap(-1, size), np.uint8)
    array[:] = 1
    return array


def _until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 5
    while not true():
        assert time.monotonic() < end
        time.sleep(0.001)


def mebibyte() -> object:
    return held(MIB)


def test_an_env_costs_what_it_holds() -> None:
    assert cost_of_one(mebibyte) == pytest.approx(MIB, rel=0.1)


def test_what_the_first_env_loads_for_all_is_not_the_cost_of_one() -> None:
    shared: list[object] = []

    def make() -> object:
        if not shared:
            shared.append(held(64 * MIB))
        return mebibyte()

    assert cost_of_one(make) == pytest.approx(MIB, rel=0.1)


@pytest.mark.parametrize("can_be_made", [0, 1])
def test_an_env_that_cannot_be_made_again_costs_what_it_costs(can_be_made: int) -> None:
    made: list[object] = []

    def make() -> object:
        if len(made) == can_be_made:
            raise OSError("the emulator runs once")
        made.append(mebibyte())
        return made[-1]

    assert cost_of_one(make) == 0


def test_pages_that_come_back_from_a_fork_that_ended_are_no_cost_of_an_env() -> None:
    """A fork's pages are shared until all who look at it have let go: here, until an env is made.

    It leaves the tree of processes at once, so that it is nobody's child any more.
    """
    block = held(64 * MIB)
    told, tell = os.pipe()
    if (middle := os.fork()) == 0:
        if os.fork() == 0:
            os.close(tell)
            os.read(told, 1)
        os._exit(0)
    os.waitpid(middle, 0)
    os.close(told)
    made: list[int] = []

    def make() -> object:
        made.append(tell)
        if len(made) == 4:
            os.close(tell)
            _until(lambda: proc.tree_memory(os.getpid()).pss > before + 24 * MIB)
        return object()

    before = proc.tree_memory(os.getpid()).pss
    assert cost_of_one(make) < 64 * 1024
    assert len(made) > 4 and block is not None


def test_an_env_that_holds_nothing_costs_nothing_to_speak_of() -> None:
    assert cost_of_one(object) < 64 * 1024


def test_a_worker_costs_its_private_pages() -> None:
    own = proc.rollup()
    assert own is not None
    found = read_workers([os.getpid()])
    assert found.started == 1
    assert found.each_bytes == pytest.approx(own.private_dirty, rel=0.05)


def test_workers_that_are_gone_cost_nothing() -> None:
    gone = 2**22 + 1  # beyond the largest process id
    assert read_workers([gone]).started_bytes == read_workers([]).shared_bytes


def around(
    monkeypatch: pytest.MonkeyPatch, beside: Beside, scratch: Path, workers: WorkerReading
) -> Readings:
    monkeypatch.setattr(beside_training, "read_workers", lambda _: workers)
    return with_beside(READINGS, beside, scratch)


FOUR = WorkerReading(started=4, each_bytes=5 * MIB, shared_bytes=MIB)


def test_workers_of_one_env_each_have_their_envs_in_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    beside = Beside(make_env=mebibyte, workers=(1, 2, 3, 4))
    found = around(monkeypatch, beside, tmp_path, FOUR)
    assert found.workers == FOUR
    assert found.env_each == 0


def test_workers_of_several_envs_are_told_apart_from_these(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Four workers of 5 MiB run eight envs of 1 MiB: 12 MiB are the workers' own."""
    beside = Beside(make_env=mebibyte, workers=(1, 2, 3, 4), worker_envs=8)
    found = around(monkeypatch, beside, tmp_path, FOUR).workers
    assert found is not None
    assert (found.started, found.envs) == (4, 8)
    assert found.env_bytes == pytest.approx(MIB, rel=0.1)
    assert found.each_bytes == pytest.approx(3 * MIB, rel=0.1)
    assert found.started_bytes == pytest.approx(FOUR.started_bytes, abs=8)


def test_envs_cost_no_more_than_their_workers_hold(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    small = WorkerReading(started=2, each_bytes=MIB, shared_bytes=0)
    beside = Beside(make_env=mebibyte, workers=(1, 2), worker_envs=8)
    found = around(monkeypatch, beside, tmp_path, small).workers
    assert found is not None
    assert (found.env_bytes, found.each_bytes) == (MIB // 4, 0)


def test_without_workers_an_env_is_measured_here(tmp_path: Path) -> None:
    found = with_beside(READINGS, Beside(make_env=mebibyte), tmp_path)
    assert found.workers is None
    assert found.env_each == pytest.approx(MIB, rel=0.1)


def test_nothing_beside_changes_nothing(tmp_path: Path) -> None:
    assert with_beside(READINGS, Beside(), tmp_path) == READINGS


def test_evaluating_costs_what_stays_and_saving_what_it_takes_meanwhile(tmp_path: Path) -> None:
    kept: list[object] = []
    asked: list[object] = []

    def evaluate(steps: int, seconds: float) -> None:
        kept.append(held(16 * MIB))

    def save(folder: Path, replay: bool) -> None:
        asked.append((folder, replay))
        held(48 * MIB)

    found = with_beside(READINGS, Beside(evaluate=evaluate, save=save), tmp_path)
    assert found.evaluate_bytes == pytest.approx(16 * MIB, rel=0.1)
    assert found.save_bytes == pytest.approx(48 * MIB, rel=0.1)
    assert asked == [(tmp_path, False)]
    assert found.pickled_copies == 0  # nobody saves a replay buffer


def test_a_pickled_array_leaves_no_file(tmp_path: Path) -> None:
    found = with_beside(READINGS, Beside(saves_replay=True), tmp_path)
    assert found.pickled_copies in (0, 1)
    assert not list(tmp_path.iterdir())
