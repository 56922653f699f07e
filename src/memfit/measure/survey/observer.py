"""Peaks of a run that really trains, phase by phase, and how much of its arrays is resident."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from typing import Any

from memfit.measure.kernel.proc import PeakMeter
from memfit.model.training import Observed

_PAGE = os.sysconf("SC_PAGE_SIZE")
_PRESENT = 1 << 63


def resident_bytes(address: int, size: int) -> int:
    """How much of a stretch of this process's memory is resident, from the kernel's page map."""
    first, last = address // _PAGE, -(-(address + size) // _PAGE)
    with open("/proc/self/pagemap", "rb") as pagemap:
        pagemap.seek(first * 8)
        entries = pagemap.read((last - first) * 8)
    pages = struct.iter_unpack("Q", entries)
    present = sum(1 for (entry,) in pages if entry & _PRESENT)
    return min(size, present * _PAGE)


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
        for name, arrays in self.training.arrays().items():
            held = sum(resident_bytes(*_place(array)) for array in arrays)
            self.rows[name] = max(self.rows.get(name, 0), held)


def _place(array: Any) -> tuple[int, int]:
    """Where an array or a tensor of the host has its numbers."""
    if hasattr(array, "data_ptr"):
        return int(array.data_ptr()), int(array.nbytes)
    return int(array.ctypes.data), int(array.nbytes)
