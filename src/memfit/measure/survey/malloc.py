"""glibc's malloc, called directly: what it holds, and blocks that nothing is written into."""

from __future__ import annotations

import ctypes
import random
from typing import Any

_DRAWN = (40_000, 90_000, 150_000, 300_000, 700_000, 1_500_000)
_MORE_THAN_ANY_TOP = 2**40
ALIGNMENT = 64  # torch's, for the data of tensors


class _MallInfo2(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


class Malloc:
    """glibc's malloc through ctypes; `available` is false where the C library is another one."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None)
        self.available = all(hasattr(self._libc, name) for name in ("mallinfo2", "memalign"))
        if not self.available:
            return
        libc = self._libc
        libc.mallinfo2.restype = _MallInfo2
        libc.malloc.restype = ctypes.c_void_p
        libc.malloc.argtypes = [ctypes.c_size_t]
        libc.free.argtypes = [ctypes.c_void_p]
        libc.free.restype = None
        libc.memalign.restype = ctypes.c_void_p
        libc.memalign.argtypes = [ctypes.c_size_t, ctypes.c_size_t]

    @property
    def functions(self) -> tuple[Any, Any, Any]:
        """malloc, memalign and free themselves, for loops of millions of calls."""
        return self._libc.malloc, self._libc.memalign, self._libc.free

    def allocate(self, size: int) -> int:
        """A block's address, or 0 where the system refuses so much address space."""
        return int(self._libc.malloc(size) or 0)

    def free(self, address: int) -> None:
        self._libc.free(address)

    def disturb(self, draw: random.Random) -> int:
        """Let a few blocks of any size come, and most of them go again; the bytes of the others."""
        sizes = [draw.choice(_DRAWN) for _ in range(12)]
        blocks = [self.allocate(size) for size in sizes]
        gone = draw.sample(range(12), 9)
        for i in gone:
            self.free(blocks[i])
        return sum(size for i, size in enumerate(sizes) if i not in gone)

    def free_bytes(self) -> int:
        """Bytes that malloc holds and nobody uses."""
        return int(self._libc.mallinfo2().fordblks) if self.available else 0

    def release(self, *, keep_top: bool = False) -> None:
        """Give the pages of free blocks back to the system.

        With `keep_top` the heap itself stays as it is, so that a replay finds what it would have.
        """
        if self.available:
            self._libc.malloc_trim(ctypes.c_size_t(_MORE_THAN_ANY_TOP if keep_top else 0))
