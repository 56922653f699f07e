"""Memory that grows in place: anonymous, or a file without a name on a disk."""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memfit.errors import UsageError

Array = NDArray[Any]


class Backing:
    """Bytes that can grow; arrays are made over them for one operation at a time."""

    _fd = -1  # of no file

    def __init__(self) -> None:
        self.nbytes = 0
        self.address = 0  # of the first byte, until the next `grow`
        self._map: mmap.mmap | None = None
        self._closed = False

    def grow(self, nbytes: int) -> None:
        """Make room for this many bytes in all; what is there stays."""
        self._check()
        if nbytes <= self.nbytes:
            return
        self._provide(nbytes)
        self.nbytes = nbytes
        self.address = self.array((nbytes,), np.dtype(np.uint8)).ctypes.data

    def _provide(self, nbytes: int) -> None:
        # Growing a map moves page tables, not bytes, and touches nothing.
        if self._map is None:
            anonymous = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if self._fd < 0 else {}
            self._map = mmap.mmap(self._fd, nbytes, **anonymous)
        else:
            self._map.resize(nbytes)

    def array(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        *,
        offset: int = 0,
        strides: tuple[int, ...] | None = None,
    ) -> Array:
        """An array over these bytes. Drop it before the next `grow`."""
        self._check()
        if self._map is None:
            return np.empty((0, *shape[1:]), dtype)
        return np.ndarray(shape, dtype, buffer=self._map, offset=offset, strides=strides)

    def close(self) -> None:
        """Give everything back. Using it afterwards is an error."""
        self._closed = True
        self.nbytes = self.address = 0
        if self._map is not None:
            self._map.close()
            self._map = None

    def __getstate__(self) -> dict[str, Any]:
        self._check()
        return {"bytes": self.array((self.nbytes,), np.dtype(np.uint8)), **self._place()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        saved = state.pop("bytes")
        self.__init__(**state)  # type: ignore[misc]
        self.grow(len(saved))
        if len(saved):
            self.array((self.nbytes,), np.dtype(np.uint8))[:] = saved

    def _place(self) -> dict[str, Any]:
        return {}

    def _check(self) -> None:
        if self._closed:
            raise UsageError("this buffer was closed. Make a new one, or load one that was saved")


class DiskBacking(Backing):
    """Bytes in a file that has no name: it goes with the process, however that ends."""

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        super().__init__()
        self.directory = Path(directory) if directory is not None else None
        try:
            with tempfile.TemporaryFile(dir=self.directory) as file:
                self._fd = os.dup(file.fileno())
        except OSError as error:
            where = self.directory or tempfile.gettempdir()
            raise UsageError(
                f"cannot store a replay buffer in {where}: {error}. "
                "Give a directory that exists and may be written to"
            ) from error
        self._gone = weakref.finalize(self, os.close, self._fd)

    def _provide(self, nbytes: int) -> None:
        # A hole in a mapped file would end the process with SIGBUS once the disk is full.
        try:
            os.posix_fallocate(self._fd, self.nbytes, nbytes - self.nbytes)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            where = self.directory or tempfile.gettempdir()
            raise UsageError(
                f"the disk of {where} has no room for {nbytes - self.nbytes:,} more bytes of "
                "the replay buffer. Free some, give another directory or a smaller buffer_size"
            ) from error
        super()._provide(nbytes)

    def _place(self) -> dict[str, Any]:
        return {"directory": self.directory}

    def close(self) -> None:
        super().close()
        self._gone()
