"""Watch a run that really learns: its phases' peaks, and how much of each array is resident."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Mapping
from typing import Any

from memfit.measure.kernel.proc import PeakMeter

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
    """Reads an on-policy model's memory while its own `learn` runs, and ends it after a while."""

    def __init__(
        self, model: Any, iterations: int, finish: Callable[[dict[str, Any]], None]
    ) -> None:
        self.model = model
        self.left = iterations
        self.finish = finish
        self.meter = PeakMeter()
        self.peaks: dict[str, int] = {"build": self.meter.now()}
        self._wrap("collect_rollouts", "rollout", after=self.read_arrays)
        self._wrap("train", "update", after=self.count)
        self.arrays: dict[str, int] = {}

    def _wrap(self, name: str, phase: str, after: Callable[[], None]) -> None:
        own = getattr(self.model, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self.meter.start()
            result = own(*args, **kwargs)
            self.peaks[phase] = max(self.peaks.get(phase, 0), self.meter.peak())
            after()
            return result

        setattr(self.model, name, call)

    def read_arrays(self) -> None:
        """The rows of the rollout buffer that are resident, array by array."""
        for name, value in vars(self.model.rollout_buffer).items():
            items: Mapping[str, Any] = value if isinstance(value, dict) else {"": value}
            for key, item in items.items():
                if hasattr(item, "ctypes") and item.ndim:
                    path = f"rollout_buffer.{name}.{key}".rstrip(".")
                    self.arrays[path] = resident_bytes(item.ctypes.data, item.nbytes)

    def count(self) -> None:
        self.left -= 1
        if self.left <= 0:
            self.end()

    def end(self) -> None:
        """Tell what was seen so far."""
        self.finish({"peaks": self.peaks, "rows": {**self.arrays, **self.read_networks()}})

    def read_networks(self) -> dict[str, int]:
        """Parameters, gradients and optimizer state that are resident."""
        policy = self.model.policy
        tensors = list(policy.parameters())
        state = [v for s in policy.optimizer.state.values() for v in s.values()]
        groups = {
            "policy.parameters": tensors,
            "policy.gradients": [t.grad for t in tensors if t.grad is not None],
            "policy.optimizer": [v for v in state if hasattr(v, "data_ptr")],
        }
        return {
            name: sum(resident_bytes(t.data_ptr(), t.nbytes) for t in group)
            for name, group in groups.items()
        }
