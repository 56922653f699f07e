"""All observations of a rollout or of a replay buffer, each sample stored once for each env."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from memfit.dropins.windows.backing import Backing, DiskBacking
from memfit.dropins.windows.compressed import CompressedStrip
from memfit.dropins.windows.lane import Lane, Strip
from memfit.dropins.windows.layout import Array, Window, bits, completed, detect
from memfit.dropins.windows.pool import ALIGNMENT, BufferPool
from memfit.dropins.windows.strip import RawStrip
from memfit.errors import UsageError

log = logging.getLogger("memfit.dropins")

# When to look for windows: early, so that little is stored plainly first, and again later.
LOOKS = (4, 16, 64, 256, 1024)
MOST_LOOKS = 12
PAIR_STEPS = 32
PAIR_ENVS = 8
PAIR_BYTES = 4 << 20
CHUNK_BYTES = 4 << 20
LARGEST_INT32 = 2**31 - 1


class NoWindow(UsageError):
    """An observation is not the window that was declared."""


@dataclass(frozen=True, kw_only=True)
class TrackReport:
    """What became of one observation array."""

    name: str
    parts: tuple[Window, ...]
    nbytes: int
    dense_nbytes: int
    complete: int

    def __str__(self) -> str:
        of = self.name or "observations"
        times = self.dense_nbytes / self.nbytes if self.nbytes else 1.0
        parts = "; ".join(map(str, self.parts))
        return (
            f"{of}: {self.nbytes:,} bytes, {times:.1f} times fewer than {self.dense_nbytes:,} "
            f"({parts}; {self.complete} stored completely within episodes)"
        )


@dataclass(frozen=True, kw_only=True)
class Storage:
    """Where rows are kept."""

    compression: str | None = None
    kind: str = "memory"
    directory: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("memory", "disk"):
            raise UsageError(f"storage={self.kind!r} is not known. Use 'memory' or 'disk'")
        if self.compression is not None and self.kind == "disk":
            raise UsageError(
                "compressed rows are kept in memory. Use either compression or storage='disk'"
            )

    def strip(self, part: Window, unit: np.dtype[Any]) -> Strip:
        if self.compression is not None:
            return CompressedStrip(part, unit, self.compression)
        backing = DiskBacking(self.directory) if self.kind == "disk" else Backing()
        return RawStrip(part, unit, backing)


class Track:
    """Stands behind one array of observations, or behind observations and the next ones.

    `columns` is 1 for a rollout (written from step 0 after each `restart`) and 2 for a replay
    ring (observation and next observation of each step).
    """

    def __init__(
        self,
        *,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        n_steps: int,
        n_envs: int,
        columns: int,
        windows: Sequence[Window] | None = None,
        storage: Storage | None = None,
        name: str = "",
        pool: BufferPool | None = None,
    ) -> None:
        if dtype.itemsize not in (1, 2, 4, 8) or dtype.hasobject:
            raise UsageError(
                f"observations of {dtype} cannot be stored. Use numbers of 1 to 8 bytes"
            )
        self.shape = tuple(shape)
        self.dtype = dtype
        self.n_steps = n_steps
        self.n_envs = n_envs
        self.columns = columns
        self.name = name
        self.storage = storage or Storage()
        self.pool = pool or BufferPool()
        self.declared = windows is not None
        self.size = math.prod(self.shape)
        # Of each env: whether an episode begins with this observation, or ends with the next.
        self.fresh: Array | None = None
        self.ended: Array | None = None
        self._unit = np.dtype(f"u{dtype.itemsize}")
        self._said = False
        self.lanes: list[Lane]
        self.starts: Array  # (column, part, step, env): where windows begin
        self.closed = False
        self._looks = 0
        self._lay_out(windows or ())

    def _begin(self) -> None:
        self.written = self._next = 0
        self._pushes = self._surprises = self.complete = 0

    # Writing

    def write(self, column: int, pos: int, value: Array) -> None:
        """Store one observation of each env."""
        flat = self._checked(value)
        if column == 0 and pos not in (self._next, (self._next - 1) % self.n_steps):
            raise UsageError(
                f"observations are written in order: step {self._next} comes next, not {pos}. "
                "Call reset() before you begin again"
            )
        if column == 0:
            self._next = (pos + 1) % self.n_steps
        ring = self.columns == 2
        for i, lane in enumerate(self.lanes):
            part = lane.part
            block = flat[:, part.offset : part.end].reshape(
                self.n_envs, part.outer, part.length, part.inner
            )
            starts, complete = lane.push(
                block,
                same_first=ring and column == 0,
                steps_ahead=0 if ring else self.n_steps - 1 - pos,
            )
            if part.moves:
                self._judge(column, pos, lane, complete)
            if lane.strip.rows > LARGEST_INT32 and self.starts.dtype == np.int32:
                self.starts = self.starts.astype(np.int64)
            self.starts[column, i, pos] = starts
            if ring and column == 1 and self.starts[0, i, self._next, 0] >= 0:
                lane.forget_before(self.starts[0, i, self._next])
        self.written = max(self.written, pos + 1)
        self._pushes += self.n_envs

    def restart(self) -> None:
        """Begin a rollout again: what was found out about windows stays."""
        for lane in self.lanes:
            lane.restart()
        self.starts[...] = -1
        self._begin()

    def close(self) -> None:
        """Give back all memory; any use afterwards is an error."""
        self.closed = True
        for lane in self.lanes:
            lane.strip.close()

    # Reading

    def read(self, starts: Array, lanes: list[Lane] | None = None) -> Array:
        """Observations whose windows begin at `starts` (part, ...), as one new array."""
        out = self.pool.empty((*starts.shape[1:], *self.shape), self.dtype)
        flat = out.view(self._unit).reshape(-1, self.size)
        for lane, at in zip(lanes or self.lanes, starts.reshape(len(starts), -1), strict=True):
            part = lane.part
            into = flat if part.size == self.size else flat[:, part.offset : part.end]
            into = into.reshape(len(into), part.outer, part.length, part.inner)
            if not len(at):
                continue
            if at.min() >= 0:
                lane.strip.fill(at, into)
                continue
            never = at < 0  # steps that were not written yet are zeros, as in an array
            into[never] = 0
            if not never.all():
                kept = np.empty((int((~never).sum()), *into.shape[1:]), self._unit)
                lane.strip.fill(at[~never], kept)
                into[~never] = kept
        return out

    def read_pair(self, pos: Array, envs: Array) -> tuple[Array, Array]:
        """Observations and next observations of these steps, gathered at once."""
        starts = self.starts[:, :, pos, envs]
        if len(pos) * self.size * self.dtype.itemsize % ALIGNMENT:
            return self.read(starts[0]), self.read(starts[1])
        observations, following = self.read(starts.swapaxes(0, 1))
        return observations, following

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays: rows and where windows begin."""
        return int(self.starts.nbytes) + sum(lane.strip.nbytes for lane in self.lanes)

    @property
    def dense_nbytes(self) -> int:
        """What plain arrays of all observations would take."""
        return self.columns * self.n_steps * self.n_envs * self.size * self.dtype.itemsize

    @property
    def parts(self) -> tuple[Window, ...]:
        return tuple(lane.part for lane in self.lanes)

    def report(self) -> TrackReport:
        return TrackReport(
            name=self.name,
            parts=self.parts,
            nbytes=self.nbytes,
            dense_nbytes=self.dense_nbytes,
            complete=self.complete,
        )

    # Finding windows

    def look(self, step: int, episode_starts: Array | None = None) -> None:
        """After `step` steps: look for windows if none were found, or if many were none."""
        if step in LOOKS and step <= self.n_steps and not self.declared and self._unsure():
            self._find(episode_starts)
            if step >= LOOKS[2] or step == self.n_steps or not self._unsure():
                self.say()

    def look_back(self, episode_starts: Array | None = None) -> None:
        """At the end of a rollout: the same, for the rollouts to come."""
        if not self.declared and self.written and self._unsure():
            self._find(episode_starts, rebuild=False)
            self.say()

    def say(self) -> None:
        """Tell once what is stored how."""
        if self._said:
            return
        self._said = True
        of = self.name or "observations"
        if any(part.moves for part in self.parts):
            log.info("%s: %s", of, "; ".join(map(str, self.parts)))
        else:
            log.warning(
                "%s: no window over time was found, so they are stored as they are. "
                "Declare windows= if there is one",
                of,
            )

    def _unsure(self) -> bool:
        if self._looks >= MOST_LOOKS:
            return False
        return not any(p.moves for p in self.parts) or self._surprises * 10 > self._pushes

    def _find(self, episode_starts: Array | None, *, rebuild: bool = True) -> None:
        self._looks += 1
        few = max(2, PAIR_BYTES // (self.size * self.dtype.itemsize))
        envs = slice(0, min(PAIR_ENVS, max(1, few // 4)))
        first = max(0, self.written - min(PAIR_STEPS, few))
        if self.columns == 2:
            before = self.read(self.starts[0, :, first : self.written, envs])
            after = self.read(self.starts[1, :, first : self.written, envs])
        else:
            seen = self.read(self.starts[0, :, first : self.written, envs])
            before, after = seen[:-1], seen[1:]
            if episode_starts is not None:
                within = episode_starts[first + 1 : self.written, envs] == 0
                before, after = before[within], after[within]
        shape = (-1, *self.shape)
        found = detect(before.reshape(shape), after.reshape(shape))
        if completed(found, self.size) != self.parts:
            self._said = False
            self._lay_out_again(found, rebuild=rebuild)

    def _lay_out(self, windows: Sequence[Window]) -> None:
        parts = completed(windows, self.size)
        self.lanes = [
            Lane(
                part,
                self.storage.strip(part, self._unit),
                n_envs=self.n_envs,
                extent=self._extent(part) if self.columns == 2 else 0,
            )
            for part in parts
        ]
        shape = (self.columns, len(parts), self.n_steps, self.n_envs)
        self.starts = np.full(shape, -1, np.int32)
        self._begin()

    def _extent(self, part: Window) -> int:
        """Rows that an env of a ring gets at a time."""
        share = (part.length + self.n_steps * part.new) // 16
        chunk = CHUNK_BYTES // (part.row * self.dtype.itemsize)
        return max(8 * part.length, min(share, chunk))

    def _lay_out_again(self, windows: Sequence[Window], *, rebuild: bool) -> None:
        """Store what is there once more in another way, step by step."""
        old, starts = self.lanes, self.starts
        order = [(self._next + i) % self.n_steps for i in range(self.n_steps)]
        order = [pos for pos in order if starts[0, 0, pos, 0] >= 0] if rebuild else []
        self._lay_out(windows)
        told, self.fresh, self.ended = (self.fresh, self.ended), None, None
        if order:
            self._next = order[0]
        for pos in order:
            for column in range(self.columns):
                self.write(column, pos, self.read(starts[column, :, pos], old))
        self.fresh, self.ended = told
        self._surprises = self.complete = 0
        for lane in old:
            lane.strip.close()

    # Checks

    def _judge(self, column: int, pos: int, lane: Lane, complete: Array) -> None:
        """Count observations that the last ones do not explain; refuse them if declared so."""
        if not complete.any():
            return
        known = self.ended if column else self.fresh
        if known is not None:
            complete = complete & ~known
            if not complete.any():
                return
        count = int(complete.sum())
        self._surprises += count
        self.complete += count
        if self.declared and known is not None and column == self.columns - 1:
            env = int(np.flatnonzero(complete)[0])
            raise NoWindow(
                f"{self.name or 'observation'} of env {env} at step {pos} is not the window that "
                f"was declared ({lane.part}): it does not go on from the observation before it. "
                "Declare what the env gives, or leave windows out to let them be found"
            )

    def _checked(self, value: Array) -> Array:
        """The observation as (env, number) in unsigned integers, cast as an array would."""
        shape = (self.n_envs, *self.shape)
        value = np.asarray(value)
        if value.shape != shape:
            raise UsageError(
                f"{self.name or 'observation'} has shape {value.shape}, the buffer was made for "
                f"{shape}. Make a new buffer for a changed observation space"
            )
        if value.dtype != self.dtype or not value.flags.c_contiguous:
            cast = np.empty(shape, self.dtype)
            cast[...] = value
            value = cast
        return bits(value).reshape(self.n_envs, self.size)
