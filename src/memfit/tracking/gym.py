"""A Gymnasium wrapper that tells a recording how far an environment is, and what it holds."""

from __future__ import annotations

import time
from typing import Any

import gymnasium

from memfit.tracking.held_arrays import arrays
from memfit.tracking.tracker import Tracker

_LOOK_SECONDS = 5.0


class MemoryWrapper(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Tells a tracker's recording of steps, of the phase, and of the arrays that the env holds.

    The arrays are looked up when an episode begins, and not more than once in five seconds.
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], tracker: Tracker, *, phase: str = "rollout"
    ) -> None:
        super().__init__(env)
        self.tracker = tracker
        self.name = phase
        self.steps = 0
        self._next_look = 0.0

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        self.tracker.phase(self.name)
        result = self.env.reset(**kwargs)
        if time.monotonic() >= self._next_look:
            self._tell()
        return result

    def close(self) -> None:
        """Tell once more what it holds, and close it."""
        self._tell()
        self.env.close()

    def _tell(self) -> None:
        self.tracker.holders(lambda: arrays(self.env.unwrapped, "env"))
        self._next_look = time.monotonic() + _LOOK_SECONDS

    def step(self, action: Any) -> Any:
        """One step more."""
        result = self.env.step(action)
        self.steps += 1
        self.tracker.step(self.steps)
        return result
