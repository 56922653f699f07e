"""What the windowed buffers of stable-baselines3 have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from memfit.dropins.windows.layout import Array, Window, bits
from memfit.dropins.windows.pool import BufferPool
from memfit.dropins.windows.track import Storage, Track, TrackReport
from memfit.dropins.windows.windowed import WindowArray
from memfit.errors import UsageError

Windows = str | Sequence[Window] | Mapping[str, Sequence[Window]]
SINGLE = ""  # the name of an observation that is no Dict


def _declared(windows: Windows, names: set[str]) -> dict[str, Sequence[Window]]:
    if isinstance(windows, str):
        if windows != "auto":
            raise UsageError(f"windows={windows!r} is not known. Give 'auto' or a list of Window")
        return {}
    if isinstance(windows, Mapping):
        unknown = set(windows) - names
        if unknown:
            raise UsageError(
                f"windows are declared for {sorted(unknown)}, which the observation space does "
                f"not have. Its keys are {sorted(names)}"
            )
        return dict(windows)
    if names != {SINGLE}:
        raise UsageError("declare windows of a Dict observation as {key: [Window(...)]}")
    return {SINGLE: windows}


def nothing_like(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """A space of the same kind without any numbers, so that no large array is made for it."""
    if isinstance(space, spaces.Dict):
        return spaces.Dict({key: nothing_like(part) for key, part in space.spaces.items()})
    return spaces.Box(0, 1, (0,), np.uint8)


def go_on(track: Track, pos: int) -> None:
    """Write a step after the last one: the oldest rows of each window come again as the newest.

    What is no window is the last observation with another bit or two.
    """
    last = track.read(track.starts[-1, :, pos - 1]).copy()
    if track.columns == 2:
        track.write(0, pos, last)
    flat = bits(last).reshape(track.n_envs, track.size)
    for part in track.parts:
        rows = flat[:, part.offset : part.end].reshape(-1, part.outer, part.length, part.inner)
        if part.moves:
            rows[...] = np.roll(rows, part.new if part.newest_first else -part.new, axis=2)
        else:
            rows ^= np.array(1 + pos % 127, rows.dtype)  # the same again would not be stored
    track.fresh = track.ended = np.zeros(track.n_envs, np.bool_)
    track.write(track.columns - 1, pos, last)


class Windowed:
    """Mixed into a buffer of the library, before its class."""

    # Filled in by the library's classes.
    device: Any
    buffer_size: int
    n_envs: int
    pos: int
    obs_shape: Any
    observation_space: Any
    observations: Any

    tracks: dict[str, Track]
    pool: BufferPool
    _columns: int  # of each track
    _windows: Windows
    _storage = Storage()
    _for_dict: type[Any] | None = None  # the class for Dict observations, another in the library

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A buffer of the class for these observations."""
        space = args[1] if len(args) > 1 else kwargs.get("observation_space")
        chosen = cls._class_for(space, kwargs)
        made = object.__new__(chosen)
        if chosen is not cls:
            made.__init__(*args, **kwargs)
        return made

    @classmethod
    def _class_for(cls, space: Any, options: dict[str, Any]) -> type[Any]:
        return cls._for_dict or cls if isinstance(space, spaces.Dict) else cls

    def _new_tracks(self) -> dict[str, Track]:
        """One track for each array of observations that the buffer of the library would have."""
        space, shape = self.observation_space, self.obs_shape
        parts = space.spaces if isinstance(space, spaces.Dict) else {SINGLE: space}
        shapes = shape if isinstance(shape, dict) else {SINGLE: shape}
        declared = _declared(self._windows, set(parts))
        return {
            name: Track(
                shape=shapes[name],
                dtype=np.dtype(part.dtype),
                n_steps=self.buffer_size,
                n_envs=self.n_envs,
                columns=self._columns,
                windows=declared.get(name),
                storage=self._storage,
                name=name,
                pool=self.pool,
            )
            for name, part in parts.items()
        }

    def _arrays(self, column: int = 0) -> Any:
        """What stands in the place of an array of observations, or of a dict of them."""
        arrays = {name: WindowArray(track, column) for name, track in self.tracks.items()}
        return arrays.get(SINGLE, arrays)

    def to_torch(self, array: Array, copy: bool = True) -> torch.Tensor:
        """Minibatches of observations are new already: they become tensors without a copy."""
        new = not copy or self.pool.owns(array)
        if array.flags.carray and self.device.type == "cpu":
            tensor = torch.from_numpy(array)
            return tensor if new else tensor.clone()  # as torch.tensor, in half the time
        if new:
            return torch.as_tensor(array, device=self.device)
        return torch.tensor(array, device=self.device)

    def repeat(self, filled: int, rows: int) -> None:
        """Fill steps up to `rows` with observations that go on from the last of the filled ones.

        For rehearsals: they take as much memory as real ones.
        """
        for track in self.tracks.values():
            for pos in range(filled, rows):
                go_on(track, pos)

    def report(self) -> list[TrackReport]:
        """For each array of observations: what is a window, and how many bytes it takes."""
        return [track.report() for track in self.tracks.values()]

    def close(self) -> None:
        """Give back all memory of observations. Using the buffer afterwards is an error."""
        for track in self.tracks.values():
            track.close()
        self.pool.clear()

    @property
    def observation_nbytes(self) -> int:
        """Bytes that observations take."""
        return sum(track.nbytes for track in self.tracks.values())
