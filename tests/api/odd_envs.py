"""Environments as they should not be, small, for tests of profiles."""

from __future__ import annotations

import logging
import os
import signal
import time
from typing import Any

import numpy as np


class Space:
    """As much of a space as random actions need."""

    def __init__(self, shape: tuple[int, ...] = (4,)) -> None:
        self.shape, self.dtype = shape, np.dtype(np.float32)

    def sample(self) -> int:
        return 0

    def seed(self, seed: int) -> None:
        pass


class Plain:
    """An environment that does nothing, of ten steps an episode, without Gymnasium."""

    observation_space = action_space = Space()

    def __init__(self, each: int = 0) -> None:
        self.t = 0
        self.each = each
        self.history: list[Any] = []

    def reset(self, seed: int | None = None) -> Any:
        self.t = 0
        return np.zeros(4, np.float32), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        return np.zeros(4, np.float32), 0.0, self.t >= 10, False, {}


class Leaks(Plain):
    def reset(self, seed: int | None = None) -> Any:
        self.history.append(np.ones(self.each or 1024, np.uint8))
        return super().reset(seed)


class InTurns(Plain):
    """As PettingZoo's environments whose agents step one after the other."""

    def agent_iter(self) -> Any:
        yield "first"


class Raises(Plain):
    def step(self, action: Any) -> Any:
        raise RuntimeError("the game is broken")


class RaisesLater(Plain):
    frames = 0

    def step(self, action: Any) -> Any:
        self.frames += 1
        if self.frames == 120:
            raise RuntimeError("the game is over")
        return super().step(action)


class WrongLater(Plain):
    """Its observations are of another shape after a while."""

    frames = 0

    def step(self, action: Any) -> Any:
        self.frames += 1
        seen, *rest = super().step(action)
        return seen if self.frames < 100 else np.zeros(6, np.float32), *rest


class NoObservation(Plain):
    def reset(self, seed: int | None = None) -> Any:
        super().reset(seed)
        return None, {}


class NoScreen(Plain):
    def __init__(self) -> None:
        raise RuntimeError("no display name and no $DISPLAY environment variable")


class WrongTuple(Plain):
    def step(self, action: Any) -> Any:
        return np.zeros(4, np.float32), 0.0, False, {}


class OldReset(Plain):
    def reset(self, seed: int | None = None) -> Any:
        return np.zeros(4, np.float32)


class WrongShape(Plain):
    observation_space = Space((5,))


class NeverEnds(Plain):
    def step(self, action: Any) -> Any:
        return np.zeros(4, np.float32), 0.0, False, False, {}


class Hangs(Plain):
    def step(self, action: Any) -> Any:
        while True:
            pass


class Forks(Plain):
    """Its forks go on with the loop, as if they were the environment."""

    def reset(self, seed: int | None = None) -> Any:
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
        return super().reset(seed)


class ReadsInput(Plain):
    def step(self, action: Any) -> Any:
        input("which move? ")


class KillsItself(Plain):
    def step(self, action: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


class Exits(Plain):
    def step(self, action: Any) -> Any:
        raise SystemExit(7)


class EndsAtOnce(Plain):
    def step(self, action: Any) -> Any:
        os._exit(3)


class TakesAll(Plain):
    def step(self, action: Any) -> Any:
        self.history.append(np.ones(50 << 20, np.uint8))
        return super().step(action)


class NoActions:
    """Without a space of actions."""

    def reset(self) -> None:
        pass

    def step(self, action: Any) -> None:
        pass


NUMBER = 7


def nothing() -> None:
    pass


class KeepsLast(Plain):
    """It keeps the last 500 observations, in a list that it cuts itself."""

    capacity = 500

    def step(self, action: Any) -> Any:
        self.history.append(np.ones(2000, np.uint8))
        del self.history[: -self.capacity]
        return super().step(action)


class SaysItEnds(Plain):
    """It has a capacity, and does not keep to it."""

    capacity = 6000

    def step(self, action: Any) -> Any:
        self.history.append(np.ones(200, np.uint8))
        return super().step(action)


class Parallel:
    """Two agents who step at once, as PettingZoo has them."""

    possible_agents = ("first", "second")

    def __init__(self) -> None:
        self.agents: list[str] = []
        self.t = 0

    def action_space(self, agent: str) -> Space:
        return Plain.action_space

    observation_space = action_space

    def reset(self, seed: int | None = None) -> Any:
        self.t, self.agents = 0, list(self.possible_agents)
        return dict.fromkeys(self.agents, np.zeros(4, np.float32)), {}

    def step(self, actions: dict[str, int]) -> Any:
        self.t += 1
        seen = dict.fromkeys(self.agents, np.zeros(4, np.float32))
        if self.t >= 10:
            self.agents = []
        return seen, {}, {}, {}, {}


class Slow(Plain):
    def step(self, action: Any) -> Any:
        time.sleep(0.002)
        return super().step(action)


class NamesLoggers(Plain):
    """A logger of its own name for each episode: `logging` never forgets one."""

    def reset(self, seed: int | None = None) -> Any:
        self.episode = getattr(self, "episode", 0) + 1
        logging.getLogger(f"episode {self.episode}").data = bytes(3000)  # type: ignore[attr-defined]
        return super().reset(seed)
