"""Observes a run that really trains: peaks by phase, and how much of its arrays is resident."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from memfit.measure.kernel.proc import PeakMeter
from memfit.measure.kernel.process_memory import ProcessMemory
from memfit.model.training import Observed


class Observer:
    """Reads a training's memory while its own code runs, and ends it after some updates."""

    def __init__(self, training: Observed, updates: int, finish: Callable[[], None]) -> None:
        self.training = training
        self.left = updates
        self.finish = finish
        self.meter = PeakMeter()
        self.peaks: dict[str, int] = {"build": self.meter.now()}
        self.rows: dict[str, int] = {}
        for owner, name, phase in training.marks():
            self._wrap(owner, name, phase)

    def _wrap(self, owner: Any, name: str, phase: str) -> None:
        own = getattr(owner, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self.meter.start()
            result = own(*args, **kwargs)
            self.peaks[phase] = max(self.peaks.get(phase, 0), self.meter.peak())
            self._read_rows()
            self.left -= phase == "update"
            if self.left <= 0:
                self.finish()
            return result

        setattr(owner, name, call)

    def _read_rows(self) -> None:
        """The most of each array that was resident so far."""
        with ProcessMemory(os.getpid()) as memory:
            for name, arrays in self.training.arrays().items():
                held = sum(memory.resident(*_place(array)) for array in arrays)
                self.rows[name] = max(self.rows.get(name, 0), held)


def _place(array: Any) -> tuple[int, int]:
    """Where the numbers of an array, or of a tensor of the host, begin and end."""
    start = array.data_ptr() if hasattr(array, "data_ptr") else array.ctypes.data
    return int(start), int(start) + int(array.nbytes)
