"""Stacked frames of gymnasium as views of one strip of frames, not as copies.

env = StackFrames(env, 4)  # instead of gymnasium.wrappers.FrameStackObservation(env, 4)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from gymnasium.wrappers.utils import create_zero_array
from numpy.typing import NDArray

from memfit.errors import Unsupported, UsageError

Array = NDArray[Any]

# A strip holds so many stacks one after another: the frames that are copied when it is full are
# then few beside those that are written.
STACKS = 16
PADDINGS = ("reset", "zero")


class FrameStrip:
    """Frames one after another; the last `stack_size` of them are a view.

    What was shown is never written again: when a strip is full, another one is begun, and the old
    one lives as long as someone holds a view of it.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any, stack_size: int, rows: int) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.stack_size, self.rows = stack_size, rows
        self._frames = np.empty((rows, *shape), dtype)
        self._end = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the strip that is being written."""
        return self._frames.nbytes

    def append(self, frame: Any, name: str, times: int = 1) -> None:
        """Write a frame, once or as padding."""
        given = np.asarray(frame)
        if given.shape != self.shape or not np.can_cast(given.dtype, self.dtype, "same_kind"):
            raise UsageError(
                f"{name} is {given.dtype} {given.shape}, its space is {self.dtype} {self.shape}: "
                "a changed observation space cannot be stacked. Fix what the env returns, or its "
                "observation_space"
            )
        if self._end + times > self.rows:
            self._begin_another()
        self._frames[self._end : self._end + times] = given
        self._end += times

    def stacked(self) -> Array:
        """The newest frames; read-only, and valid for good."""
        view = self._frames[self._end - self.stack_size : self._end]
        view.flags.writeable = False
        return view

    def _begin_another(self) -> None:
        kept = self._frames[max(0, self._end - self.stack_size) : self._end]
        another = np.empty_like(self._frames)
        another[: len(kept)] = kept
        self._frames, self._end = another, len(kept)


class StackFrames(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """The last `stack_size` observations, without a copy of any of them but the newest.

    Observations and spaces are those of gymnasium's `FrameStackObservation`, with the same
    `padding_type`: "reset", "zero" or an observation. They are read-only views: what keeps many of
    them (a list, a replay) keeps each frame once. `rows` is the length of a strip.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        stack_size: int,
        *,
        padding_type: Any = "reset",
        rows: int | None = None,
    ) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(
            self, stack_size=stack_size, padding_type=padding_type, rows=rows
        )
        gymnasium.Wrapper.__init__(self, env)
        self.stack_size = _whole("stack_size", stack_size, 1)
        self.rows = STACKS * self.stack_size if rows is None else rows
        # A full strip must take a stack that is kept, and another one of padding.
        _whole("rows", self.rows, 2 * self.stack_size)
        space = env.observation_space
        self.strips: dict[str, FrameStrip] = {}
        self._tree = self._strip_of(space, "observation")
        self._padding = self._padding_value(padding_type, space)
        self._pads_with_reset = isinstance(padding_type, str) and padding_type == "reset"
        self.observation_space = batch_space(space, n=self.stack_size)
        self._append(self._padding, self.stack_size)

    @property
    def nbytes(self) -> int:
        """Bytes of all strips that are being written."""
        return sum(strip.nbytes for strip in self.strips.values())

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """One step; the newest frame is added."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._append(obs)
        return self._stacked(), reward, terminated, truncated, info

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """A new episode: padding, then its first frame."""
        obs, info = self.env.reset(seed=seed, options=options)
        if self._pads_with_reset:
            self._append(obs, self.stack_size)
        else:
            self._append(self._padding, self.stack_size - 1)
            self._append(obs)
        return self._stacked(), info

    def _append(self, obs: Any, times: int = 1) -> None:
        _each(self._tree, obs, "observation", lambda strip, frame, n: strip.append(frame, n, times))

    def _stacked(self) -> Any:
        return _each(self._tree, self._tree, "observation", lambda strip, _, __: strip.stacked())

    def _strip_of(self, space: spaces.Space[Any], name: str) -> Any:
        """A strip for each array of an observation, in the observation's structure."""
        if isinstance(space, spaces.Dict):
            parts = space.spaces.items()
            return {key: self._strip_of(part, f"{name}[{key!r}]") for key, part in parts}
        if isinstance(space, spaces.Tuple):
            inner = enumerate(space.spaces)
            return tuple(self._strip_of(part, f"{name}[{i}]") for i, part in inner)
        known = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
        if not isinstance(space, known):
            raise Unsupported(
                f"{name} is a {type(space).__name__}, which has no frames of one size: use "
                "gymnasium's FrameStackObservation"
            )
        # As the library stacks them: a Discrete becomes one number a frame.
        shape, dtype = space.shape or (), space.dtype
        self.strips[name] = FrameStrip(shape, dtype, self.stack_size, self.rows)
        return self.strips[name]

    @staticmethod
    def _padding_value(padding_type: Any, space: spaces.Space[Any]) -> Any:
        if isinstance(padding_type, str) and padding_type in PADDINGS:
            return create_zero_array(space)
        if isinstance(padding_type, str) or not space.contains(padding_type):
            raise UsageError(
                f"padding_type={padding_type!r} is not known, and no observation of {space}: "
                "give 'reset', 'zero' or an observation"
            )
        return padding_type


def _each(tree: Any, obs: Any, name: str, do: Callable[[FrameStrip, Any, str], Any]) -> Any:
    """The same structure, with what was done with each strip and its part of an observation."""
    if isinstance(tree, dict):
        if not isinstance(obs, dict) or obs.keys() != tree.keys():
            found = sorted(obs) if isinstance(obs, dict) else type(obs).__name__
            raise UsageError(
                f"{name} has {found}, its space has {sorted(tree)}: a changed observation space "
                "cannot be stacked. Fix what the env returns, or its observation_space"
            )
        return {key: _each(part, obs[key], f"{name}[{key!r}]", do) for key, part in tree.items()}
    if isinstance(tree, tuple):
        if not isinstance(obs, tuple) or len(obs) != len(tree):
            raise UsageError(
                f"{name} is no tuple of {len(tree)} parts, as its space is: a changed observation "
                "space cannot be stacked. Fix what the env returns, or its observation_space"
            )
        pairs = enumerate(zip(tree, obs, strict=True))
        return tuple(_each(part, own, f"{name}[{i}]", do) for i, (part, own) in pairs)
    return do(tree, obs, name)


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < least:
        raise UsageError(f"{name}={value!r} cannot be used: give a whole number of {least} or more")
    return int(value)
