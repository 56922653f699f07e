"""A callback for stable-baselines3: phases, steps and buffers in the recording and the logger."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from memfit.tracking.tracker import Tracker, track

MIB = 2**20


class MemoryCallback(BaseCallback):
    """Put phases, steps and buffers into the recording, and memory into the logger.

    Below `memfit run` it adds to that recording; else it records itself, into `record` where that
    is given. The logger gets `memory/pss_mib` and `memory/peak_mib` after every rollout.
    """

    def __init__(self, record: Path | str | None = None, verbose: int = 0) -> None:
        super().__init__(verbose)
        self.record = record
        self._tracking: AbstractContextManager[Tracker] | None = None
        self._tracker: Tracker | None = None

    def _on_training_start(self) -> None:
        self._tracking = track(self.record)
        self._tracker = self._tracking.__enter__()
        self._tracker.holders(buffers(self.model))

    def _on_rollout_start(self) -> None:
        if self._tracker is not None:
            self._tracker.phase("rollout")

    def _on_step(self) -> bool:
        if self._tracker is not None:
            self._tracker.step(self.num_timesteps)
        return True

    def _on_rollout_end(self) -> None:
        if self._tracker is None:
            return
        amount = self._tracker.memory_bytes()
        self.logger.record("memory/pss_mib", round(amount / MIB, 1))
        self.logger.record("memory/peak_mib", round(self._tracker.peak_bytes / MIB, 1))
        self._tracker.phase("update")

    def _on_training_end(self) -> None:
        if self._tracking is not None:
            self._tracking.__exit__(None, None, None)
        self._tracking = self._tracker = None


def buffers(model: Any) -> dict[str, int]:
    """The arrays of a model's buffer, by path."""
    found: dict[str, int] = {}
    for name in ("rollout_buffer", "replay_buffer"):
        for key, value in vars(getattr(model, name, None) or _Nothing()).items():
            parts = value.items() if isinstance(value, dict) else [("", value)]
            for part, array in parts:
                if (size := getattr(array, "nbytes", None)) is not None:
                    path = f"model.{name}.{key}" + (f"[{part!r}]" if part else "")
                    found[path] = int(size)
    return found


class _Nothing:
    """A buffer that is not there."""
