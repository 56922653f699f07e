"""One part of all observations over time: each row is stored once for each env."""

from __future__ import annotations

from collections import deque
from operator import gt

import numpy as np

from memfit.dropins.windows.compressed import CompressedStrip
from memfit.dropins.windows.layout import Array, Window
from memfit.dropins.windows.strip import SLAB, RawStrip

Strip = RawStrip | CompressedStrip
_FEW = 64  # envs, which are looked at one by one


class Lane:
    """Adds observations' rows to a strip: only those that the last window does not have."""

    def __init__(self, part: Window, strip: Strip, *, n_envs: int, extent: int) -> None:
        self.part = part
        self.strip = strip
        self.extent = extent
        self.n_envs = n_envs
        self._end = np.zeros(n_envs, np.int64)
        self._limit = np.zeros(n_envs, np.int64)
        # Where each env's extents begin, oldest first; adjacent ones are one run of rows.
        self._extents: list[deque[tuple[int, int]]] = [deque() for _ in range(n_envs)]
        self._begun = np.zeros(n_envs, np.bool_)
        self._oldest = np.zeros(n_envs, np.int64)
        self._oldest_end = np.zeros(n_envs, np.int64)
        self._none = np.zeros(n_envs, np.bool_)
        self._none.flags.writeable = False
        # Whether all of an observation is one run of bytes, as it is stored.
        self._one_run = part.outer == 1 and part.moves and not part.newest_first

    def restart(self) -> None:
        """Forget all observations; keep the memory."""
        self.strip.clear()
        self._end[:] = 0
        self._limit[:] = 0
        self._begun[:] = False
        self._oldest[:] = self._oldest_end[:] = 0
        for extents in self._extents:
            extents.clear()

    def push(self, block: Array, *, same_first: bool, steps_ahead: int = 0) -> tuple[Array, Array]:
        """Add one observation of each env: where their windows begin, and which are complete.

        `block` is (env, outer, row, inner). An observation of which the last one says nothing
        is stored completely.
        """
        if self._one_run and self.n_envs <= _FEW and self._goes_on(block, same_first=same_first):
            return self._end - self.part.length, self._none
        part = self.part
        rows = block.transpose(0, 2, 1, 3)
        if part.newest_first:
            rows = rows[:, ::-1]
        unknown = self._begun.copy()
        crowded = ~self._begun
        moved = (0, part.new) if same_first or not part.moves else (part.new, 0)
        for shift in moved:
            envs = np.flatnonzero(unknown)
            envs = envs[self._same(envs, rows, shift)]
            unknown[envs] = False
            if not shift:
                continue
            room = self._has_room(envs, shift)
            crowded[envs[~room]] = True
            envs = envs[room]
            if len(envs):
                self.strip.write(self._end[envs], rows[envs, part.length - shift :])
                self._end[envs] += shift
        envs = np.flatnonzero(unknown | crowded)
        if len(envs):
            self._write_complete(envs, rows, steps_ahead)
        return self._end - part.length, unknown

    def _goes_on(self, block: Array, *, same_first: bool) -> bool:
        """Add an observation that each env's last window explains in the usual way; else nothing.

        That is by far the most frequent case, and with few envs its time is that of the calls.
        """
        strip = self.strip
        if not isinstance(strip, RawStrip) or not self._begun.all():
            return False
        part, ends = self.part, self._end.tolist()
        shift = 0 if same_first else part.new
        kept = part.length - shift
        if shift and any(map(gt, ends, (self._limit - shift).tolist())):
            return False
        given = block.__array_interface__["data"][0]
        if not strip.holds(ends, kept, given, block.strides[0]):
            return False
        if shift:
            strip.put(ends, block, kept)
            self._end += shift
        return True

    def forget_before(self, start: Array) -> None:
        """Give back what lies before each env's oldest window that is still wanted."""
        for env in np.flatnonzero((start < self._oldest) | (start >= self._oldest_end)).tolist():
            extents = self._extents[env]
            while not extents[0][0] <= start[env] < sum(extents[0]):
                self.strip.release(*extents.popleft())
            self._oldest[env], self._oldest_end[env] = extents[0][0], sum(extents[0])

    def _same(self, envs: Array, rows: Array, shift: int) -> Array:
        """Which envs' observations begin with what the last window has after `shift` rows."""
        part = self.part
        kept = part.length - shift
        if not kept:
            return np.ones(len(envs), np.bool_)
        at = self._end[envs] - kept
        step = max(1, SLAB // (kept * part.row * rows.itemsize))
        found = np.empty(len(envs), np.bool_)
        for i in range(0, len(envs), step):
            stored = self.strip.read(at[i : i + step], kept)
            every = len(envs) == self.n_envs
            given = rows[i : i + step] if every else rows[envs[i : i + step]]
            found[i : i + step] = _equal(stored, given[:, :kept])
        return found

    def _has_room(self, envs: Array, rows: int) -> Array:
        room = self._end[envs] + rows <= self._limit[envs]
        if self.extent:
            for i in np.flatnonzero(~room).tolist():
                room[i] = self._extend(int(envs[i]), self.extent)
        return room

    def _extend(self, env: int, rows: int) -> bool:
        """Take another extent; whether it goes on where the last one of a ring ends.

        If it does not, the next observation is stored completely.
        """
        begun, limit = self._begun[env], int(self._limit[env])
        begin = self.strip.take(rows, limit if begun else -1)
        self._extents[env].append((begin, rows))
        goes_on = bool(begun and self.extent and begin == limit)
        if not goes_on:
            if begun:
                old, length = self._extents[env][-2]
                self.strip.seal(old, min(length, int(self._end[env]) - old))
            self._end[env] = begin
        self._limit[env] = begin + rows
        return goes_on

    def _write_complete(self, envs: Array, rows: Array, steps_ahead: int) -> None:
        length = self.part.length
        for env in envs.tolist():
            while self._end[env] + length > self._limit[env]:
                self._extend(env, self.extent or length + steps_ahead * self.part.new)
        self.strip.write(self._end[envs], rows[envs])
        self._end[envs] += length
        self._begun[envs] = True


def _equal(stored: Array, given: Array) -> Array:
    """For each env, whether all rows are equal; eight bytes at a time where they lie so."""
    nbytes = stored[0].nbytes if len(stored) else 0
    if nbytes % 8 == 0 and given[:1].flags.c_contiguous and given.strides[0] % 8 == 0:
        wide = given.reshape(len(given), -1)
        if wide.base is not None and wide.ctypes.data % 8 == 0:
            a = stored.reshape(len(stored), -1).view(np.uint64)
            return np.asarray((a == wide.view(np.uint64)).all(axis=1))
    return np.asarray((stored == given).reshape(len(stored), -1).all(axis=1))
