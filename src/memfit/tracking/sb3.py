"""A callback for stable-baselines3: phases, steps and holders, in the recording and the logger."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from memfit.tracking.held_arrays import arrays
from memfit.tracking.tracker import Tracker, track

MIB = 2**20


class MemoryCallback(BaseCallback):
    """Put phases, steps and holders into the recording, and memory into the logger.

    Below `memfit run` it adds to that recording; else it records itself, into `record` where that
    is given. The logger gets `memory/pss_mib`, `memory/peak_mib` and `memory/buffer_mib` after
    every rollout.
    """

    def __init__(self, record: Path | str | None = None, verbose: int = 0) -> None:
        super().__init__(verbose)
        self.record = record
        self._begun = False
        self._tracking: AbstractContextManager[Tracker] | None = None
        self._tracker: Tracker | None = None

    def _on_training_start(self) -> None:
        # A second learn() finds the place taken by the first: the logger alone is told of it.
        again = self.record is not None and self._begun
        self._tracking = track(None if again else self.record)
        self._tracker = self._tracking.__enter__()
        self._begun = True

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
        with self._tracker.telling():
            self._log(self._tracker)
        self._tracker.phase("update")

    def _log(self, tracker: Tracker) -> None:
        amount = tracker.memory_bytes()
        self.logger.record("memory/pss_mib", round(amount / MIB, 1))
        self.logger.record("memory/peak_mib", round(tracker.peak_bytes / MIB, 1))
        found = holders(self.model)
        buffer = sum(size for path, size in found.items() if "_buffer" in path)
        self.logger.record("memory/buffer_mib", round(buffer / MIB, 1))
        tracker.holders(found)

    def _on_training_end(self) -> None:
        if self._tracker is not None:
            self._tracker.holders(lambda: holders(self.model))
        if self._tracking is not None:
            self._tracking.__exit__(None, None, None)
        self._tracking = self._tracker = None


def holders(model: Any) -> dict[str, int]:
    """What a model holds, by path: its buffer's arrays, its networks and their training."""
    found: dict[str, int] = {}
    for name in ("rollout_buffer", "replay_buffer"):
        found |= arrays(getattr(model, name, None), f"model.{name}")
    parameters = {id(p): p for p in model.policy.parameters()}.values()
    found["model.policy parameters"] = sum(p.nbytes for p in parameters)
    found["model.policy grad"] = sum(p.grad.nbytes for p in parameters if p.grad is not None)
    found["model.policy optimizer"] = sum(map(_state_bytes, _optimizers(model.policy)))
    return {path: size for path, size in found.items() if size}


def _optimizers(policy: Any) -> Iterator[Any]:
    """A policy's own optimizer, and those of its actor and critic."""
    for owner in (policy, getattr(policy, "actor", None), getattr(policy, "critic", None)):
        if (found := getattr(owner, "optimizer", None)) is not None:
            yield found


def _state_bytes(optimizer: Any) -> int:
    states = (value for state in optimizer.state.values() for value in state.values())
    return sum(value.nbytes for value in states if hasattr(value, "nbytes"))
