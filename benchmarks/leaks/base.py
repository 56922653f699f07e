"""What every environment of the corpus has in common: sizes drawn by a seed, and usual garbage."""

from __future__ import annotations

import random
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces

NAMES = ("history", "frames", "log", "seen", "cache", "records", "store", "items", "trace", "past")


class Base(gym.Env[Any, Any]):
    """An environment whose families say what it keeps, at a reset or at a step.

    `LEAKS` is the truth of a family, `HOLDER` says where in Python it is held: the name of an
    attribute that is drawn stands as {name}; nothing where C alone holds it. `a` is an amount in
    bytes that an episode keeps.
    """

    LEAKS: ClassVar[bool] = False
    HOLDER: ClassVar[str] = "env.{name}"
    TORCH: ClassVar[bool] = False

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        draw = self.draw
        self.length = draw.randint(8, 40)  # of an episode
        self.varies = draw.random() < 0.5
        self.a = int(2 ** draw.uniform(10, 15))
        self.name = draw.choice(NAMES)
        self.size = draw.choice((4, 8, 17, 84))
        self.observation_space = spaces.Box(-1, 1, (self.size,), np.float32)
        self.action_space = spaces.Discrete(4)
        self.garbage = draw.choice((0, 64, 4096, 200_000))
        self.episode = self.t = 0
        self.end = self.length
        self.trajectory: list[Any] = []
        self.chance = np.random.default_rng(seed)
        self.prepare()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.episode += 1
        self.t = 0
        self.end = self.length + (self.draw.randint(-4, 12) if self.varies else 0)
        self.trajectory.clear()
        self.on_reset()
        return self.see(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.t += 1
        if self.garbage:
            np.empty(self.garbage, np.uint8).fill(self.t % 256)
        self.trajectory.append((self.t, int(action), {"reward": 0.5 * self.t}))
        self.on_step()
        return self.see(), 1.0, self.t >= self.end, False, {"t": self.t}

    def see(self) -> Any:
        return self.chance.random(self.size, np.float32)

    def keep(self, value: Any) -> None:
        """Give the drawn attribute a value."""
        setattr(self, self.name, value)

    @property
    def kept(self) -> Any:
        return getattr(self, self.name)

    def prepare(self) -> None:
        """Make what the family keeps."""

    def on_reset(self) -> None:
        """What the family does as an episode begins."""

    def on_step(self) -> None:
        """What the family does at a step."""
