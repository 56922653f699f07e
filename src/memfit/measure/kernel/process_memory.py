"""A process's memory from outside: which pages are there and what they hold. Nothing is stopped."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from memfit.measure.kernel.proc import PAGE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PRESENT = 1 << 63
_AT_ONCE = 1 << 16  # pages looked up in one read

Span = tuple[int, int]


class ProcessMemory:
    """The memory of a process; empty where the kernel does not show it.

    To read a page that is not there would make it: ask which are `present` first.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._pages, self._bytes = (_opened(f"/proc/{pid}/{name}") for name in ("pagemap", "mem"))

    def __enter__(self) -> ProcessMemory:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self._pages, self._bytes):
            if file >= 0:
                os.close(file)
        self._pages = self._bytes = -1

    @property
    def readable(self) -> bool:
        """Whether it can be known which pages are there."""
        return self._pages >= 0

    def present(self, start: int, end: int) -> Iterator[Span]:
        """The stretches between two addresses that are in memory, as pairs of addresses."""
        import numpy as np

        first, last = start // PAGE, -(-end // PAGE)
        stretch: Span | None = None
        for page in range(first, last, _AT_ONCE):
            count = min(_AT_ONCE, last - page)
            try:
                entries = np.frombuffer(os.pread(self._pages, 8 * count, 8 * page), dtype="<u8")
            except OSError:
                break
            for a, b in stretches((entries & np.uint64(_PRESENT)) != 0):
                begin, stop = (page + a) * PAGE, (page + b) * PAGE
                if stretch and stretch[1] == begin:
                    stretch = stretch[0], stop
                else:
                    if stretch:
                        yield stretch
                    stretch = begin, stop
        if stretch:
            yield stretch

    def resident(self, start: int, end: int) -> int:
        """How many bytes between two addresses are in memory; pages at the edges count by part."""
        return sum(min(b, end) - max(a, start) for a, b in self.present(start, end))

    def read(self, address: int, size: int) -> bytes:
        """So many bytes, fewer where there are no more, in whole words."""
        try:
            data = os.pread(self._bytes, size, address)
        except OSError:
            return b""
        return data[: len(data) // 8 * 8]

    def read_into(self, copy: NDArray[np.uint64], address: int) -> None:
        """Fill an array from an address on, as far as there is something."""
        with contextlib.suppress(OSError):
            os.preadv(self._bytes, [copy.data], address)


def cut(span: Span, edges: Iterable[int]) -> list[Span]:
    """A stretch cut at those of some addresses that lie within it."""
    start, end = span
    return list(pairwise([start, *sorted(edge for edge in edges if start < edge < end), end]))


def stretches(flags: NDArray[np.bool_]) -> list[Span]:
    """Where runs of true begin and end."""
    import numpy as np

    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0))
    return [(a, b) for a, b in edges.reshape(-1, 2).tolist()]


def _opened(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY)
    except OSError:
        return -1
