"""Observing a training: which bytes of its arrays are resident, and when it has been seen."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest

from memfit.measure.kernel.process_memory import ProcessMemory
from memfit.measure.survey import observer
from memfit.measure.survey.observer import Observer
from memfit.units import MIB
from tests.measure.survey.trainings import Noted, ScriptedMeter, spec_of


def untouched(size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """An array of which no page is there; small pages, so that none comes with another."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, np.uint8)


def held(array: np.ndarray[Any, np.dtype[np.uint8]]) -> int:
    return resident_bytes(array.ctypes.data, array.nbytes)


def resident_bytes(address: int, size: int) -> int:
    with ProcessMemory(os.getpid()) as memory:
        return memory.resident(address, address + size)


def test_an_array_is_resident_as_far_as_it_was_written() -> None:
    array = untouched(4 * MIB)
    assert held(array) == 0
    array[: 2 * MIB] = 1
    assert held(array) == 2 * MIB
    array[3 * MIB] = 1
    assert held(array) == 2 * MIB + mmap.PAGESIZE
    array[:] = 1
    assert held(array) == 4 * MIB


def test_a_part_of_a_page_is_no_more_than_itself() -> None:
    array = untouched(mmap.PAGESIZE * 2)
    array[:] = 1
    assert resident_bytes(array.ctypes.data + 100, 50) == 50
    assert resident_bytes(array.ctypes.data + mmap.PAGESIZE - 10, 20) == 20
    assert resident_bytes(array.ctypes.data, 0) == 0


class Model:
    """A training with a rollout and an update."""

    def __init__(self) -> None:
        self.buffer = untouched(4 * MIB)
        self.filled = 0

    def collect(self, rows: int, *, value: int = 1) -> int:
        self.buffer[self.filled : self.filled + rows] = value
        self.filled += rows
        return self.filled

    def train(self) -> str:
        return "trained"


class Watched(Noted):
    """Says which calls of a `Model` are which phase."""

    def __init__(self, model: Model) -> None:
        super().__init__(spec_of())
        self.model = model

    def marks(self) -> Iterable[tuple[Any, str, str]]:
        return [(self.model, "collect", "rollout"), (self.model, "train", "update")]

    def arrays(self) -> Mapping[str, Iterable[Any]]:
        return {"buffer": [self.model.buffer], "halves": [self.model.buffer[: 2 * MIB]]}


def observed(updates: int) -> tuple[Model, Observer, list[str]]:
    model, ended = Model(), list[str]()
    return model, Observer(Watched(model), updates, lambda: ended.append("ended")), ended


def test_calls_go_through_as_they_are() -> None:
    model, _, _ = observed(2)
    assert model.collect(10, value=7) == 10
    assert model.buffer[9] == 7
    assert model.train() == "trained"


def test_it_ends_after_so_many_updates() -> None:
    model, _, ended = observed(2)
    model.collect(1)
    model.train()
    model.collect(1)
    assert not ended
    model.train()
    assert ended == ["ended"]


def test_every_phase_has_its_largest_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer, "PeakMeter", lambda: ScriptedMeter(30, 70, 40, 60))
    model, seen, _ = observed(2)
    assert seen.peaks == {"build": 10}
    for _ in range(2):
        model.collect(1)
        model.train()
    assert seen.peaks == {"build": 10, "rollout": 40, "update": 70}


def test_rows_are_the_most_that_was_resident() -> None:
    model, seen, _ = observed(2)
    model.collect(MIB)
    assert seen.rows == {"buffer": MIB, "halves": MIB}
    model.collect(2 * MIB)
    assert seen.rows == {"buffer": 3 * MIB, "halves": 2 * MIB}
    model.buffer = untouched(4 * MIB)
    model.train()
    assert seen.rows == {"buffer": 3 * MIB, "halves": 2 * MIB}


def test_tensors_are_read_as_arrays_are() -> None:
    torch = pytest.importorskip("torch")

    class OfTensors(Watched):
        def arrays(self) -> Mapping[str, Iterable[Any]]:
            return {"policy": [torch.ones(1000), torch.ones(24)]}

    model = Model()
    seen = Observer(OfTensors(model), 1, lambda: None)
    model.train()
    assert seen.rows == {"policy": 4096}
