"""Rollout buffers of stable-baselines3 that store each sample of a window once.

    PPO("CnnPolicy", env, rollout_buffer_class=WindowRolloutBuffer)

Everything but the observations is the library's own code, so the order of minibatches, and
all numbers in them, are the same to the bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3.common.buffers import BaseBuffer, DictRolloutBuffer, RolloutBuffer

from memfit.dropins.windows.layout import Array
from memfit.dropins.windows.pool import BufferPool
from memfit.dropins.windows.sb3 import Windowed, Windows
from memfit.dropins.windows.windowed import WindowArray
from memfit.errors import UsageError


class _WindowRollout(Windowed):
    """Puts window arrays in the place of the arrays of observations."""

    episode_starts: Array  # filled in by the library's classes
    _columns = 1

    def __init__(self, *args: Any, windows: Windows = "auto", **kwargs: Any) -> None:
        self._windows = windows
        self.tracks, self.pool = {}, BufferPool()
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
        if not self.tracks:
            self.tracks = self._new_tracks()
        elif self.episode_starts.shape == (self.buffer_size, self.n_envs):
            for track in self.tracks.values():
                track.look_back(self.episode_starts)
        self.pool.clear()
        try:
            # So that the library makes no large arrays.
            self.obs_shape = dict.fromkeys(shape, (0,)) if isinstance(shape, dict) else (0,)
            super().reset()  # type: ignore[misc]
        finally:
            self.obs_shape = shape
        for track in self.tracks.values():
            track.restart()
        self.observations = self._arrays()

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
