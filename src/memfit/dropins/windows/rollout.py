"""Rollout buffers of stable-baselines3 that store each sample of a window once.

    PPO("CnnPolicy", env, rollout_buffer_class=WindowRolloutBuffer)

Everything but the observations is the library's own code, so the order of minibatches, and
all numbers in them, are the same to the bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.buffers import BaseBuffer, DictRolloutBuffer, RolloutBuffer

from memfit.dropins.windows.layout import Array
from memfit.dropins.windows.pool import BufferPool
from memfit.dropins.windows.sb3 import SINGLE, Windowed, Windows, make_tracks, no_shape
from memfit.dropins.windows.track import Storage, Track
from memfit.dropins.windows.windowed import WindowArray
from memfit.errors import UsageError


class _WindowRollout(Windowed):
    """Puts window arrays in the place of the arrays of observations."""

    # Filled in by the library's classes.
    buffer_size: int
    n_envs: int
    pos: int
    obs_shape: Any
    observation_space: Any
    observations: Any
    episode_starts: Array
    generator_ready: bool

    _for_dict: type[Any] | None = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """The class for Dict observations is another one in the library: choose it."""
        space = args[1] if len(args) > 1 else kwargs.get("observation_space")
        if isinstance(space, spaces.Dict) and cls._for_dict is not None:
            other = object.__new__(cls._for_dict)
            other.__init__(*args, **kwargs)
            return other
        return object.__new__(cls)

    def __init__(self, *args: Any, windows: Windows = "auto", **kwargs: Any) -> None:
        self._windows = windows
        self.tracks: dict[str, Track] = {}
        self.pool = BufferPool()
        super().__init__(*args, **kwargs)

    def __copy__(self) -> Any:
        """Another buffer, without anything in it: call reset() before it is used."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.tracks, other.pool = {}, BufferPool()
        return other

    def reset(self) -> None:
        """Forget the rollout; keep its memory and what is known about windows."""
        shape = self.obs_shape
        if self.tracks:
            self._look_back()
        else:
            self.tracks = make_tracks(
                self.observation_space,
                shape,
                n_steps=self.buffer_size,
                n_envs=self.n_envs,
                columns=1,
                windows=self._windows,
                storage=Storage(),
                pool=self.pool,
            )
        self.pool.clear()
        try:
            self.obs_shape = no_shape(shape)  # so that the library makes no large arrays
            super().reset()  # type: ignore[misc]
        finally:
            self.obs_shape = shape
        for track in self.tracks.values():
            track.restart()
        arrays = {name: WindowArray(track) for name, track in self.tracks.items()}
        self.observations = arrays.get(SINGLE, arrays)

    def add(self, *args: Any, **kwargs: Any) -> None:
        """Add one step of all envs."""
        if self.pos >= self.buffer_size:
            raise UsageError("the rollout buffer is full. Call reset() before you add more")
        start = args[3] if len(args) > 3 else kwargs["episode_start"]
        fresh = np.asarray(start).astype(np.bool_).reshape(-1)
        for track in self.tracks.values():
            track.fresh = fresh if self.pos else np.ones_like(fresh)
        super().add(*args, **kwargs)  # type: ignore[misc]
        for track in self.tracks.values():
            track.look(self.pos, self.episode_starts)

    def _look_back(self) -> None:
        starts = self.episode_starts
        if starts.ndim == 2 and starts.shape == (self.buffer_size, self.n_envs):
            for track in self.tracks.values():
                track.look_back(starts)

    @staticmethod
    def swap_and_flatten(arr: Any) -> Any:
        """As the library's, without a copy of the observations."""
        return arr.flattened() if isinstance(arr, WindowArray) else BaseBuffer.swap_and_flatten(arr)


class WindowDictRolloutBuffer(_WindowRollout, DictRolloutBuffer):
    """For Dict observations; `WindowRolloutBuffer` becomes this by itself."""


class WindowRolloutBuffer(_WindowRollout, RolloutBuffer):
    """For PPO, A2C and TRPO: stacked frames and histories are stored once.

    `windows` is "auto", or a list of `Window` (for Dict observations: one list for each key)
    that says which part of an observation is a window; then any other observation is an error.
    """

    _for_dict = WindowDictRolloutBuffer
