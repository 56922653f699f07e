"""Replay buffers of stable-baselines3 that store each frame once.

    DQN("CnnPolicy", env, replay_buffer_class=WindowReplayBuffer)

A frame is stored once for all stacks and all next observations that show it. Everything but
the observations is the library's own code, so that the same seeds give the same samples.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.buffers import DictReplayBuffer, NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.preprocessing import get_obs_shape
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

from memfit.dropins.windows.layout import Array
from memfit.dropins.windows.pool import BufferPool
from memfit.dropins.windows.saving import Reader, Writer, opened, replacing
from memfit.dropins.windows.sb3 import SINGLE, Windowed, Windows, nothing_like
from memfit.dropins.windows.track import Storage, Track
from memfit.dropins.windows.track_saving import (
    NONSENSE,
    read_track,
    track_header,
    write_track,
)
from memfit.errors import Unsupported, UsageError


class _WindowReplay(Windowed):
    """Puts window arrays in the place of the arrays of observations."""

    full: bool  # filled in by the library's classes
    _columns = 2

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        *args: Any,
        windows: Windows = "auto",
        compression: str | None = None,
        storage: str = "memory",
        directory: str | os.PathLike[str] | None = None,
        **kwargs: Any,
    ) -> None:
        if kwargs.pop("optimize_memory_usage", False):
            raise UsageError(
                "optimize_memory_usage=True gives wrong next observations at timeouts. "
                "Leave it out: this buffer stores next observations only once anyway"
            )
        where = os.fspath(directory) if directory is not None else None
        self._windows = windows
        self._storage = Storage(compression=compression, kind=storage, directory=where)
        # The library makes arrays of the space it is given: of nothing.
        super().__init__(  # type: ignore[call-arg]
            buffer_size, nothing_like(observation_space), *args, **kwargs
        )
        self.observation_space = observation_space
        self.obs_shape = get_obs_shape(observation_space)
        self.pool = BufferPool()
        self.tracks = self._new_tracks()
        self._expose()
        self._done = np.ones(self.n_envs, np.bool_)

    def _expose(self) -> None:
        self.observations, self.next_observations = self._arrays(0), self._arrays(1)

    def add(
        self, obs: Any, next_obs: Any, action: Array, reward: Array, done: Array, infos: Any
    ) -> None:
        """Add one transition of each env."""
        ended = np.asarray(done).astype(np.bool_).reshape(-1)
        for track in self.tracks.values():
            track.fresh, track.ended = self._done, ended
        super().add(obs, next_obs, action, reward, done, infos)  # type: ignore[misc]
        self._done = ended
        if not self.full:
            for track in self.tracks.values():
                track.look(self.pos)

    def repeat(self, filled: int, rows: int) -> None:
        """As in all windowed buffers; more transitions may follow."""
        super().repeat(filled, rows)
        self.pos, self.full = rows % self.buffer_size, rows >= self.buffer_size

    def reset(self) -> None:
        """Forget all transitions; keep the memory."""
        super().reset()  # type: ignore[misc]
        for track in self.tracks.values():
            track.restart()
        self._done = np.ones(self.n_envs, np.bool_)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what is filled to a file, without a copy in memory; a crash leaves no half file.

        The file holds numbers only, no code. The env and the infos of HER are not saved.
        """
        filled = self._filled(self.pos, self.full)
        arrays = self._saved_arrays()
        header = self._header(self.tracks, arrays, self.pos, self.full)
        with replacing(Path(path)) as file:
            writer = Writer(file, header)
            for track in self.tracks.values():
                write_track(track, writer, filled)
            for values in arrays.values():
                writer.piece(values[:filled] if len(values) == self.buffer_size else values)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Take over what was saved from a buffer of the same spaces and size.

        A damaged or foreign file is an error and leaves this buffer as it was.
        """
        with opened(Path(path)) as reader:
            header = reader.header
            for key, mine in self._identity().items():
                if header.get(key) != mine:
                    raise UsageError(
                        f"{path} was saved with {key} {header.get(key)}, this buffer has {mine}. "
                        "Load it into a buffer made with the same arguments"
                    )
            tracks = self._new_tracks()
            try:
                arrays = self._read(tracks, reader)
            except BaseException as error:
                for track in tracks.values():
                    track.close()
                if isinstance(error, NONSENSE):
                    reader.broken(f"its header makes no sense ({error})")
                raise
        old, self.tracks = self.tracks, tracks
        for track in old.values():
            track.close()
        for name, values in arrays.items():
            setattr(self, name, values)
        self.pos, self.full = header["pos"], header["full"]
        self._done = self._last_done(arrays, self.pos, self.full)
        self._expose()

    def _read(self, tracks: dict[str, Track], reader: Reader) -> dict[str, Array]:
        """Fill tracks and new arrays from a file whose header must be what they then say."""
        header = reader.header
        pos, full = header["pos"], header["full"]
        if type(pos) is not int or type(full) is not bool or not 0 <= pos < self.buffer_size:
            raise ValueError(f"no step {pos} of {self.buffer_size}")
        filled = self._filled(pos, full)
        for name, track in tracks.items():
            read_track(track, header["tracks"][name], reader, pos, filled)
        arrays = {name: np.zeros_like(mine) for name, mine in self._saved_arrays().items()}
        for values in arrays.values():
            reader.into(values[:filled] if len(values) == self.buffer_size else values)
        reader.end()
        if self._header(tracks, arrays, pos, full) != header:
            raise ValueError("it contradicts itself")
        return arrays

    def _filled(self, pos: int, full: bool) -> int:
        return self.buffer_size if full else pos

    def _header(
        self, tracks: dict[str, Track], arrays: dict[str, Array], pos: int, full: bool
    ) -> dict[str, Any]:
        """All that is small, of this buffer with these contents."""
        filled = self._filled(pos, full)
        return {
            **self._identity(),
            "pos": pos,
            "full": bool(full),
            "done": self._last_done(arrays, pos, full).tolist(),
            "tracks": {name: track_header(t, filled) for name, t in tracks.items()},
            "arrays": {name: [list(a.shape), a.dtype.str] for name, a in arrays.items()},
        }

    def _last_done(self, arrays: dict[str, Array], pos: int, full: bool) -> Array:
        """Which envs begin an episode with the next step."""
        if not self._filled(pos, full):
            return np.ones(self.n_envs, np.bool_)
        return np.asarray(arrays["dones"][pos - 1]).astype(np.bool_)

    def _saved_arrays(self) -> dict[str, Array]:
        names = ("actions", "rewards", "dones", "timeouts")
        more = ("ep_start", "ep_length", "_current_ep_start")
        if getattr(self, "copy_info_dict", False):
            raise Unsupported(
                "infos are objects, which save() does not write. Use copy_info_dict=False, or "
                "model.save_replay_buffer()"
            )
        return {name: getattr(self, name) for name in names + more if hasattr(self, name)}

    def _identity(self) -> dict[str, Any]:
        """What must be the same in a file and in the buffer that loads it."""
        return {
            "class": type(self).__name__,
            "buffer_size": self.buffer_size,
            "n_envs": self.n_envs,
            "compression": self._storage.compression,
            "observations": {n: [list(t.shape), t.dtype.str] for n, t in self.tracks.items()},
        }


class WindowDictReplayBuffer(_WindowReplay, DictReplayBuffer):
    """For Dict observations; `WindowReplayBuffer` becomes this by itself."""


class WindowNStepReplayBuffer(_WindowReplay, NStepReplayBuffer):
    """For n-step returns; `WindowReplayBuffer` becomes this when it is given `n_steps`."""


class WindowHerReplayBuffer(_WindowReplay, HerReplayBuffer):
    """For hindsight experience replay: give it where you give HerReplayBuffer."""


class WindowReplayBuffer(_WindowReplay, ReplayBuffer):
    """For DQN, QR-DQN, SAC, TD3, DDPG and TQC: frames of stacks are stored once.

    `windows` is "auto" or a declaration as for the rollout buffer. `compression` is None,
    "zstd" or "lz4" (lossless); `storage` is "memory" or "disk" (a file without a name in
    `directory`). For n-step returns give `n_steps` and `gamma` in replay_buffer_kwargs.
    """

    _for_dict = WindowDictReplayBuffer

    def _get_samples(self, batch_inds: Array, env: Any = None) -> ReplayBufferSamples:
        """The library's samples, in fewer steps where nothing comes between."""
        if env is not None or type(self) is not WindowReplayBuffer:
            return super()._get_samples(batch_inds, env)
        envs = np.random.randint(0, high=self.n_envs, size=(len(batch_inds),))
        observations, following = self.tracks[SINGLE].read_pair(batch_inds, envs)
        at = batch_inds * self.n_envs + envs
        ended, cut = self.dones.reshape(-1)[at], self.timeouts.reshape(-1)[at]
        return ReplayBufferSamples(
            self.to_torch(observations),
            self.to_torch(self.actions.reshape(-1, self.actions.shape[-1])[at]),
            self.to_torch(following),
            self.to_torch((ended * (1 - cut)).reshape(-1, 1)),
            self.to_torch(self.rewards.reshape(-1)[at].reshape(-1, 1)),
        )

    @classmethod
    def _class_for(cls, space: Any, options: dict[str, Any]) -> type[Any]:
        if "n_steps" not in options:
            return super()._class_for(space, options)
        if isinstance(space, spaces.Dict):
            raise Unsupported(
                "stable-baselines3 has no n-step returns for Dict observations. Leave n_steps out"
            )
        return WindowNStepReplayBuffer
