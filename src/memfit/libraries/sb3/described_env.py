"""An environment that a run spec describes: its spaces, and the bytes it holds.

Subprocess workers import this file to unpickle their env, so it needs gymnasium and numpy alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

Facts = Mapping[str, Any]


class StubEnv(gymnasium.Env[Any, Any]):
    """Gives the same observation at every step, and really holds the described bytes."""

    def __init__(
        self, observation: Facts, action: Facts, state_bytes: int, episode_steps: int
    ) -> None:
        self.observation_space = observation_space(observation)
        self.action_space = make_space(action, bounded=True)
        self.episode_steps = episode_steps
        self.state = np.ones(state_bytes, dtype=np.uint8)  # written, so that it is resident
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._steps = 0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        return self._observe(), 0.0, False, self._steps >= self.episode_steps, {}

    def action_masks(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Every action is allowed: what a maskable algorithm asks for."""
        space = self.action_space
        if isinstance(space, spaces.Discrete):
            count = int(space.n)
        elif isinstance(space, spaces.MultiDiscrete):
            count = int(space.nvec.sum())
        else:
            count = 2 * int(np.prod(space.shape or (1,)))
        return np.ones(count, dtype=bool)

    def _observe(self) -> Any:
        """A new array at every step, as environments give."""
        space = self.observation_space
        if isinstance(space, spaces.Dict):
            return {name: _zeros(part) for name, part in space.spaces.items()}
        return _zeros(space)


def _zeros(space: spaces.Space[Any]) -> Any:
    if isinstance(space, spaces.Discrete):
        return np.int64(0)
    low = getattr(space, "low", None)
    kind = space.dtype or np.dtype(np.float32)
    finite = low is not None and bool(np.isfinite(low).all())
    return np.array(low, dtype=kind) if finite else np.zeros(space.shape or (), dtype=kind)


def observation_space(parts: Facts) -> spaces.Space[Any]:
    """One space, or a Dict of several; a single one has no name."""
    if list(parts) == [""]:
        return make_space(parts[""])
    return spaces.Dict({name: make_space(part) for name, part in parts.items()})


def make_space(facts: Facts, *, bounded: bool = False) -> spaces.Space[Any]:
    """The Gymnasium space of a description; an unbounded box runs from -1 to 1 as an action."""
    if facts["discrete"] is not None:
        return spaces.Discrete(facts["discrete"])
    if facts["multidiscrete"] is not None:
        return spaces.MultiDiscrete(facts["multidiscrete"])
    if facts["multibinary"] is not None:
        return spaces.MultiBinary(facts["multibinary"])
    kind: Any = np.dtype(facts["dtype"] or "float32")
    low, high = facts["low"], facts["high"]
    if kind.kind in "iu":
        limits: Any = np.iinfo(kind)
        ends: tuple[float, float] = (limits.min, limits.max)
    elif kind.kind == "b":
        ends = (0, 1)
    else:
        ends = (-1, 1) if bounded else (-np.inf, np.inf)
    return spaces.Box(
        low=ends[0] if low is None else low,
        high=ends[1] if high is None else high,
        shape=tuple(facts["shape"]),
        dtype=kind.type,
    )


def make_env(facts: Facts) -> gymnasium.Env[Any, Any]:
    """The env of a run spec, in the wrapper that training scripts put around it."""
    env: gymnasium.Env[Any, Any] = StubEnv(
        facts["observation"],
        facts["action"],
        facts["env"]["state_bytes"],
        facts["env"]["episode_steps"],
    )
    if facts["env"]["monitor"]:
        from stable_baselines3.common.monitor import Monitor

        env = Monitor(env)
    return env


def env_fns(facts: Facts, count: int) -> list[Callable[[], gymnasium.Env[Any, Any]]]:
    """What a vector env is made of; each can be pickled."""
    told = {name: facts[name] for name in ("observation", "action", "env")}
    return [partial(make_env, told) for _ in range(count)]
