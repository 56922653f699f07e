"""Envs for the tests of vector envs: everything random, some episodes end and some are cut."""

from __future__ import annotations

import copy
import os
import subprocess
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

SPACES: dict[str, spaces.Space[Any]] = {
    "box": spaces.Box(-1, 1, (3,), np.float32),
    "image": spaces.Box(0, 255, (4, 6, 3), np.uint8),
    "scalar": spaces.Box(-1, 1, (), np.float64),
    "discrete": spaces.Discrete(7),
    "multidiscrete": spaces.MultiDiscrete([3, 5]),
    "multibinary": spaces.MultiBinary(6),
    "dict": spaces.Dict({"a": spaces.Box(-1, 1, (2,)), "b": spaces.Discrete(3)}),
    "tuple": spaces.Tuple((spaces.Box(0, 9, (2, 2), np.int16), spaces.MultiBinary(2))),
}


class Walk(gymnasium.Env[Any, Any]):
    """Observations, rewards and the ends of episodes all come from its own generator."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(
        self, kind: str = "box", action: spaces.Space[Any] | None = None, reward: type = float
    ) -> None:
        self.observation_space = copy.deepcopy(SPACES[kind])  # each has its own generator
        self.action_space = action or spaces.Discrete(4)
        self.render_mode = "rgb_array"
        self.level = 0
        self._reward = reward
        self._steps = 0
        self.actions: list[Any] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self._steps = 0
        return self.observation_space.sample(), {"options": options, "level": self.level}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self._steps += 1
        self.actions.append(action)
        drawn = self.np_random.random()
        ended, cut = bool(drawn < 0.15), bool(drawn > 0.85)
        cut = cut or drawn < 0.05  # both at once, too
        info = {"steps": self._steps, "drawn": np.float32(drawn)} if drawn < 0.5 else {}
        total = 1.0 if isinstance(action, (dict, tuple)) else float(np.sum(action))
        reward = self._reward(10 * drawn + total)
        return self.observation_space.sample(), reward, ended, cut, info

    def render(self) -> Any:
        return np.full((2, 2, 3), self._steps, np.uint8)

    def add(self, number: int, *, twice: bool = False) -> int:
        """A method to call."""
        return self.level + number * (2 if twice else 1)

    def __repr__(self) -> str:
        return "Walk"


class Tagged(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A wrapper to look for."""


class Bad(Walk):
    """Goes wrong at its third step."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.started = subprocess.Popen(["sleep", "1000"]) if how == "orphan" else None

    def child(self) -> int:
        return self.started.pid if self.started else 0

    def step(self, action: Any) -> Any:
        obs, reward, _, _, info = super().step(action)
        found = (obs, reward, False, False, info)
        if len(self.actions) < 3:
            return found
        if self.how == "raise":
            raise KeyError("the third step")
        if self.how in ("exit", "orphan"):
            os._exit(3)
        if self.how == "hang":
            _sleep_forever()
        if self.how == "shape":
            return (np.zeros(4, np.float32), *found[1:])
        if self.how == "dtype":
            return (np.array([0.5, 1j, 2]), *found[1:])
        if self.how == "crash":
            import faulthandler

            faulthandler._sigsegv()  # type: ignore[attr-defined]
        return found

    def close(self) -> None:
        if self.how == "close":
            raise OSError("it does not close")


class Other(Walk):
    """Spaces that differ."""

    def __init__(self, what: str) -> None:
        super().__init__()
        if what == "shape":
            self.observation_space = spaces.Box(-1, 1, (4,))
        if what == "dtype":
            self.observation_space = spaces.Box(-1, 1, (3,), np.float64)
        if what == "actions":
            self.action_space = spaces.Discrete(5)
        if what == "bounds":
            self.observation_space = spaces.Box(-2, 2, (3,))


def _sleep_forever() -> None:
    while True:
        time.sleep(60)


def same(a: Any, b: Any) -> bool:
    """Whether two structures have the same arrays and values, to the bit, of the same types."""
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, np.ndarray):
        if a.dtype == np.object_:
            return same(a.tolist(), b.tolist())
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
    return bool(a == b)


def walks(count: int, kind: str = "box", **options: Any) -> list[Callable[[], Any]]:
    """Factories of so many envs."""
    return [lambda: Tagged(Walk(kind, **options)) for _ in range(count)]
