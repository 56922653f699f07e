"""Plays recorded transitions of an env back, so that the way to the first update takes seconds."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from typing import Any

# The first steps are only timed: what is recorded of the later ones takes memory. Few transitions
# of large observations will do.
_TIMED_STEPS, _REAL_STEPS = 64, 256
_MOST_BYTES = 8 * 2**20
_WORTH_SECONDS = 0.0002  # an env that is quicker than this is stepped on


class Playback:
    """Records an env's first transitions, and gives copies of them from then on.

    Only what looks like an env is played back: it has spaces, and its step gives four things or
    more. Of envs in each other that is the outermost; one that is a network only stands around an
    env. A quick env is stepped on, and one whose episodes end is until it has ended once: a script
    may wait for that.
    """

    def __init__(self) -> None:
        self.played = 0
        self._env: Any = None
        self._results: list[Any] = []
        self._reset: Any = None
        self._at = self._real = self._bytes = 0
        self._seconds = 0.0
        self._refused = False
        self._ended = False  # what is played back has the end of an episode
        self._inside = False

    def step(self, env: Any, envs: int, step: Callable[[], Any]) -> Any:
        """A step of so many envs at once, or what an earlier one gave."""
        if self._inside or hasattr(type(env), "zero_grad"):
            return step()
        self._inside = True
        try:
            return self._step(env, envs, step)
        finally:
            self._inside = False

    def reset(self, env: Any, reset: Callable[[], Any]) -> Any:
        """A reset of the env, or what an earlier one gave while steps are played back."""
        if self._inside or hasattr(type(env), "zero_grad"):
            return reset()
        self._inside = True
        try:
            return self._reset_of(env, reset)
        finally:
            self._inside = False

    def _step(self, env: Any, envs: int, step: Callable[[], Any]) -> Any:
        if self._env is None and hasattr(env, "action_space"):
            self._env = env
        if env is not self._env or self._refused:
            return step()
        if self._real < _REAL_STEPS or self._reset is None or not self._ended:
            return self._record(step)
        self.played += envs
        result = self._results[self._at % len(self._results)]
        self._at += 1
        return copy.deepcopy(result)  # the run may keep it, and must not have one for all

    def _reset_of(self, env: Any, reset: Callable[[], Any]) -> Any:
        if env is self._env and self.played and self._reset is not None:
            return copy.deepcopy(self._reset)
        result = reset()
        if self._reset is None and not self._refused:
            try:
                self._reset = copy.deepcopy(result)
            except Exception:  # noqa: BLE001 - what cannot be copied is not played back
                self._refused = True
        return result

    def end(self) -> None:
        """Step the env itself from now on."""
        self._refused = True
        self._results.clear()

    def _record(self, step: Callable[[], Any]) -> Any:
        begin = time.perf_counter()
        result = step()
        self._seconds += time.perf_counter() - begin
        self._real += 1
        if not isinstance(result, tuple) or len(result) < 4:
            self._refused = True
        elif self._real == _TIMED_STEPS:
            self._refused = self._seconds / self._real <= _WORTH_SECONDS
        elif self._real > _TIMED_STEPS:
            self._keep(result)
        return result

    def _keep(self, result: tuple[Any, ...]) -> None:
        """Keep what a step gave; of what is too much, only the end that none has had so far."""
        full, ends = self._bytes >= _MOST_BYTES, _ends(result)
        if self._ended and full:
            return
        try:
            if not full:
                self._results.append(copy.deepcopy(result))
            elif ends:
                self._results[-1] = copy.deepcopy(result)
        except Exception:  # noqa: BLE001 - as above
            self._refused = True
        self._ended = self._ended or ends
        self._bytes += getattr(result[0], "nbytes", 0)


def _ends(result: tuple[Any, ...]) -> bool:
    """Whether an episode has ended; for many envs at once no script waits for that."""
    flags: Sequence[Any] = result[2:4] if len(result) > 4 else result[2:3]
    flags = [any(flag.values()) if isinstance(flag, dict) else flag for flag in flags]
    return any(getattr(flag, "size", 1) != 1 or bool(flag) for flag in flags)
