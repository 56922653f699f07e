"""A Gymnasium wrapper that tells a recording how far an environment is."""

from __future__ import annotations

from typing import Any

import gymnasium

from memfit.tracking.tracker import Tracker


class MemoryWrapper(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Counts steps, and says when an episode begins, to the recording of a tracker."""

    def __init__(
        self, env: gymnasium.Env[Any, Any], tracker: Tracker, *, phase: str = "rollout"
    ) -> None:
        super().__init__(env)
        self.tracker = tracker
        self.name = phase
        self.steps = 0

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        self.tracker.phase(self.name)
        return self.env.reset(**kwargs)

    def step(self, action: Any) -> Any:
        """One step more."""
        result = self.env.step(action)
        self.steps += 1
        self.tracker.step(self.steps)
        return result
