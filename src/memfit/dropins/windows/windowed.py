"""An array of observations that is put together when it is read."""

from __future__ import annotations

from typing import Any

import numpy as np

from memfit.dropins.windows.layout import Array, Window
from memfit.dropins.windows.track import Track

_ALL = slice(None)


class WindowArray:
    """Reads and writes like a numpy array of (step, env, *observation); stores samples once.

    `array[step] = observations` writes one observation of each env, in order of time.
    `array[steps, envs]` and `array[step]` give new arrays. `numpy.asarray(array)` is everything.
    """

    def __init__(self, track: Track, column: int = 0, *, flat: bool = False) -> None:
        self.track = track
        self.column = column
        self.flat = flat
        self._starts: Array | None = None
        self._ended: Array | None = None  # where episodes start, for plain numpy code
        self._alone = False

    @classmethod
    def zeros(
        cls,
        shape: tuple[int, ...],
        dtype: Any = np.float32,
        *,
        windows: list[Window] | None = None,
    ) -> WindowArray:
        """An array for plain numpy code; `shape` is (steps, envs, *observation)."""
        n_steps, n_envs, *rest = shape
        track = Track(
            shape=tuple(rest),
            dtype=np.dtype(dtype),
            n_steps=n_steps,
            n_envs=n_envs,
            columns=1,
            windows=windows,
        )
        array = cls(track)
        array._alone = True
        return array

    def append(self, observations: Array, episode_start: Array | None = None) -> None:
        """Write the next step; `episode_start` says of each env whether an episode begins."""
        pos = self.track.written
        if episode_start is not None:
            if self._ended is None:
                self._ended = np.zeros(self.shape[:2], np.bool_)
            self._ended[pos] = episode_start
            self.track.fresh = self._ended[pos]
        self[pos] = observations

    @property
    def shape(self) -> tuple[int, ...]:
        steps, envs = self.track.n_steps, self.track.n_envs
        first = (steps * envs,) if self.flat else (steps, envs)
        return (*first, *self.track.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.track.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes that are held, for all arrays that share these samples."""
        return self.track.nbytes

    def __len__(self) -> int:
        return self.shape[0]

    def __setitem__(self, pos: Any, value: Array) -> None:
        if self.flat or not isinstance(pos, int | np.integer):
            raise IndexError("observations are written step by step: array[step] = observations")
        self.track.write(self.column, int(pos), value)
        if self._alone:
            self.track.look(int(pos) + 1, self._ended)

    def __getitem__(self, key: Any) -> Array:
        starts = self.track.starts[self.column] if self._starts is None else self._starts
        if self.flat and type(key) is np.ndarray:  # a minibatch
            return self.track.read(starts[:, key])
        own, rest = self._split(key)
        found = self.track.read(starts[(slice(None), *own)])
        return (
            found[(slice(None),) * (found.ndim - len(self.track.shape)) + rest] if rest else found
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self[:], dtype=dtype)

    def flattened(self) -> WindowArray:
        """The same, as (env * step, *observation)."""
        flat = WindowArray(self.track, self.column, flat=True)
        starts = self.track.starts[self.column]
        flat._starts = starts.swapaxes(1, 2).reshape(len(starts), -1)
        return flat

    def _split(self, key: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The part of an index that selects observations, and the part within them."""
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) == 3 and type(keys[2]) is slice and keys[2] == _ALL and not self.flat:
            keys = keys[:2]  # as the library asks for a minibatch
        if any(k is None or k is Ellipsis for k in keys):
            raise IndexError("use numpy.asarray(array) first for an index with None or ...")
        axes = 1 if self.flat else 2
        own, rest = keys[:axes], keys[axes:]
        while rest and isinstance(rest[-1], slice) and rest[-1] == slice(None):
            rest = rest[:-1]
        if not all(isinstance(k, slice | int | np.integer) for k in rest):
            raise IndexError("use numpy.asarray(array) first to select within observations")
        return own, rest
