"""Memory for minibatches that is used again once nobody looks at it."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# As torch aligns its own memory: kernels may round differently elsewhere.
ALIGNMENT = 64
MOST = 4


class Pool:
    """Hands out arrays; takes one again only when no array, view or tensor refers to it.

    Every view and every tensor made without a copy refers to the array that owns its memory.
    So a minibatch that someone keeps stays as it is, and the next one gets other memory.
    """

    def __init__(self) -> None:
        self._owners: list[Array] = []
        self._skips: list[int] = []  # to the first aligned byte of each

    def __getstate__(self) -> dict[str, list[Any]]:
        return {"_owners": [], "_skips": []}

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array of this shape with any contents."""
        nbytes = math.prod(shape) * dtype.itemsize
        i = self._owner(nbytes)
        return np.ndarray(shape, dtype, buffer=self._owners[i], offset=self._skips[i])

    def owns(self, values: Array) -> bool:
        """Whether these are whole minibatches of this pool, so that no copy is needed."""
        base = values.base
        return base is not None and any(base is owner for owner in self._owners)

    def clear(self) -> None:
        """Forget all memory; what is in use lives on with its users."""
        self._owners.clear()
        self._skips.clear()

    @property
    def nbytes(self) -> int:
        return sum(owner.nbytes for owner in self._owners)

    def _owner(self, nbytes: int) -> int:
        """The number of an idle owner of so many bytes."""
        wanted = nbytes + ALIGNMENT
        for i, skip in enumerate(self._skips):
            room = self._owners[i].nbytes - skip
            if nbytes <= room <= 4 * wanted and _idle(self._owners, i):
                return i
        if len(self._owners) >= MOST:
            idle = [i for i in range(len(self._owners)) if _idle(self._owners, i)]
            # One that is in use may leave the list too: its users keep it alive.
            gone = idle[0] if idle else 0
            del self._owners[gone], self._skips[gone]
        self._owners.append(np.empty(wanted, np.uint8))
        self._skips.append(-self._owners[-1].ctypes.data % ALIGNMENT)
        return len(self._owners) - 1


def _references(owners: list[Array], i: int) -> int:
    return sys.getrefcount(owners[i])


# What an array has that only its list refers to: this differs between versions of Python.
_ALONE = _references([np.empty(0, np.uint8)], 0)
_COUNTS = getattr(sys, "_is_gil_enabled", lambda: True)()


def _idle(owners: list[Array], i: int) -> bool:
    return _COUNTS and _references(owners, i) <= _ALONE
