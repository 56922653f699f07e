"""Read another process's memory, where the kernel permits it. Reading does not stop the process."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class ProcessMemory:
    """The memory of a process; empty where it may not be read.

    To read a page that is not there would make it: ask a Pagemap first.
    """

    def __init__(self, pid: int) -> None:
        try:
            self._file = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
        except OSError:
            self._file = -1

    def __enter__(self) -> ProcessMemory:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def read(self, address: int, size: int) -> bytes:
        """So many bytes, fewer where there are no more, in whole words."""
        if self._file < 0:
            return b""
        try:
            data = os.pread(self._file, size, address)
        except OSError:
            return b""
        return data[: len(data) // 8 * 8]

    def read_into(self, copy: NDArray[np.uint64], address: int) -> None:
        """Fill an array from an address on, as far as there is something."""
        if self._file >= 0:
            with contextlib.suppress(OSError):
                os.preadv(self._file, [copy.data], address)
