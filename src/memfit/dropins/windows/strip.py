"""Rows of one window part, one after another, and windows read from them."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from memfit.dropins.windows.backing import Backing
from memfit.dropins.windows.layout import Array, Window
from memfit.dropins.windows.saving import Reader, SavedExtent, check_once

# Rows are gathered through a small piece of memory that stays in the processor's cache.
SLAB = 1 << 18
_compare = ctypes.CDLL(None).memcmp
_compare.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
# Rows of so many bytes are copied one by one, straight to their place.
LARGE_ROW = 512


class RawStrip:
    """Rows as they are, in one growing piece of memory or file.

    A row has a number; an extent is a run of rows that one env fills.
    """

    def __init__(self, part: Window, unit: np.dtype[Any], backing: Backing) -> None:
        self.part = part
        self.unit = unit
        self.backing = backing
        self.rows = 0
        self._top = 0
        self._free: dict[int, list[int]] = {}
        self._row_bytes = part.row * unit.itemsize

    def take(self, rows: int, after: int = -1) -> int:
        """An extent of free rows, where it may be the one that begins at `after`."""
        free = self._free.get(rows, [])
        if after in free:
            free.remove(after)
            return after
        if free:
            return free.pop(0)
        begin = self._top
        if begin + rows > self.rows:
            self.backing.grow((begin + rows) * self._row_bytes)
            self.rows = begin + rows
        self._top += rows
        return begin

    def seal(self, begin: int, rows: int) -> None:
        """No more rows are written to this extent."""

    def release(self, begin: int, rows: int) -> None:
        """Nothing refers to this extent any more."""
        self._free.setdefault(rows, []).append(begin)

    def write(self, at: Array, rows: Array) -> None:
        """Write rows (env, row, outer, inner) from these numbers on."""
        self._rows(rows.shape[1])[at] = rows

    def put(self, ends: Sequence[int], blocks: Array, first: int) -> None:
        """Write each env's rows from `first` on; blocks are (env, 1, row, inner)."""
        rows = self.backing.array((self.rows, self.part.inner), self.unit)
        new = blocks.shape[2] - first
        for end, block in zip(ends, blocks, strict=True):
            rows[end : end + new] = block[0, first:]

    def read(self, at: Array, count: int) -> Array:
        """Rows (env, row, outer, inner) from these numbers on.

        A view where the envs go in step, so that nothing is copied; else a copy.
        """
        rows = self._rows(count)
        apart = int(at[1] - at[0]) if len(at) > 1 else 1
        if apart > 0 and (np.diff(at) == apart).all():
            return rows[at[0] : at[-1] + 1 : apart]
        return rows[at]

    def holds(self, ends: Sequence[int], rows: int, given: int, apart: int) -> bool:
        """Whether the rows before each of `ends` are those at the address `given`.

        The next env's lie `apart` bytes further. For windows whose rows are one run of bytes:
        compared where they are, without a copy or a view of them.
        """
        if not self.backing.address or not rows <= min(ends) <= max(ends) <= self.rows:
            return False
        size, first = rows * self._row_bytes, self.backing.address - rows * self._row_bytes
        for i, end in enumerate(ends):
            if _compare(first + end * self._row_bytes, given + i * apart, size):
                return False
        return True

    def fill(self, at: Array, out: Array) -> None:
        """Windows (sample, outer, row, inner) from these numbers on."""
        part = self.part
        if part.outer == 1 and self._row_bytes >= LARGE_ROW and out.flags.c_contiguous:
            if len(at) and int(at.max()) + part.length > self.rows:
                raise IndexError("a window lies outside of what is stored")
            rows = self.backing.array((self.rows, part.inner), self.unit)
            order = np.arange(part.length)[:: -1 if part.newest_first else 1]
            into = out.reshape(len(out), part.length, part.inner)
            np.take(rows, at[:, None] + order, axis=0, out=into, mode="clip")
            return
        windows = self._windows()
        if windows.ndim == 2:
            out = out.reshape(len(out), -1)
            if "torch" in sys.modules and _by_torch(windows, at, out):
                return
        step = max(1, SLAB // (self._row_bytes * self.part.length))
        for i in range(0, len(at), step):
            out[i : i + step] = windows[at[i : i + step]]

    def clear(self) -> None:
        """Forget all rows; keep the memory."""
        self._top = 0
        self._free.clear()

    def close(self) -> None:
        self.backing.close()

    @property
    def nbytes(self) -> int:
        return self.backing.nbytes

    def state(self) -> dict[str, Any]:
        """What a file says of the extents."""
        return {"top": self._top, "free": {str(k): v for k, v in self._free.items()}}

    def restore(self, state: Mapping[str, Any], used: Sequence[int], rows: int, most: int) -> None:
        """Take over what a file says of the extents; those that begin at `used` are not free."""
        free = {int(k): list(v) for k, v in state["free"].items()}
        begins = [*used, *free.get(rows, [])]
        check_once(begins, rows, most)
        if free.keys() - {rows}:
            raise ValueError("free extents are of another length")
        self.take(rows * len(begins))
        self._free = free

    def extent_state(self, begin: int) -> dict[str, Any]:
        """What a file says of one extent beside its rows."""
        return {}

    def pieces(self, begin: int, used: int) -> Iterator[Array]:
        """The used rows of an extent, for a file."""
        yield self._rows(1)[begin : begin + used]

    def read_extent(self, extent: SavedExtent, reader: Reader) -> None:
        """Take an extent over from a file."""
        reader.into(self._rows(1)[extent.begin : extent.begin + extent.used])

    def _rows(self, count: int) -> Array:
        """All runs of `count` rows, as a view that overlaps itself."""
        part, item = self.part, self.unit.itemsize
        return self.backing.array(
            (self.rows - count + 1, count, part.outer, part.inner),
            self.unit,
            strides=(self._row_bytes, self._row_bytes, part.inner * item, item),
        )

    def _windows(self) -> Array:
        """All windows in the order of an observation."""
        part, item, row = self.part, self.unit.itemsize, self._row_bytes
        count = self.rows - part.length + 1
        if part.outer == 1 and not part.newest_first:  # one run of bytes each
            return self.backing.array((count, part.size), self.unit, strides=(row, item))
        back = part.newest_first
        return self.backing.array(
            (count, part.outer, part.length, part.inner),
            self.unit,
            offset=(part.length - 1) * row if back else 0,
            strides=(row, part.inner * item, -row if back else row, item),
        )


def _by_torch(windows: Array, at: Array, out: Array) -> bool:
    """Gather windows straight to their place, which numpy cannot; whether that was possible."""
    import torch

    if not out.flags.c_contiguous:
        return False
    signed = np.dtype(f"i{out.itemsize}")  # of which torch knows all sizes
    into = torch.from_numpy(out.view(signed))
    index = torch.from_numpy(np.array(at))  # of its own: torch takes no negative strides
    torch.index_select(torch.from_numpy(windows.view(signed)), 0, index, out=into)
    return True
