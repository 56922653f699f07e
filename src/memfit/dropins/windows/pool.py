"""Memory for minibatches that is used again once nobody looks at it."""

from __future__ import annotations

import math
import sys
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# As torch aligns its own memory: kernels may round differently elsewhere.
ALIGNMENT = 64
MOST = 4
# Larger minibatches are given back at once: an idle one would stand beside the update's peak.
LARGE = 4 << 20


class BufferPool:
    """Hands out arrays; takes one again only when no array, view or tensor refers to it.

    Every view and every tensor made without a copy refers to the array that owns its memory.
    So a minibatch that someone keeps stays as it is, and the next one gets other memory.
    """

    def __init__(self) -> None:
        self._owners: list[Array] = []
        self._large: weakref.WeakValueDictionary[int, Array] = weakref.WeakValueDictionary()

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array of this shape with any contents."""
        nbytes = math.prod(shape) * dtype.itemsize
        if nbytes >= LARGE:
            owner = np.empty(nbytes + ALIGNMENT, np.uint8)
            self._large[id(owner)] = owner
        else:
            owner = self._idle(nbytes)
        return np.ndarray(shape, dtype, buffer=owner, offset=-owner.ctypes.data % ALIGNMENT)

    def owns(self, values: Array) -> bool:
        """Whether these are minibatches of this pool, so that no copy is needed."""
        base = values.base
        if base is None:
            return False
        return any(base is owner for owner in self._owners) or self._large.get(id(base)) is base

    def clear(self) -> None:
        """Forget all memory; what is in use lives on with its users."""
        self._owners.clear()

    @property
    def nbytes(self) -> int:
        """Bytes that are kept for the next minibatches."""
        return sum(owner.nbytes for owner in self._owners)

    def _idle(self, nbytes: int) -> Array:
        """An owner of so many bytes that nobody uses."""
        for i in range(len(self._owners)):
            room = self._owners[i].nbytes - ALIGNMENT
            if nbytes <= room <= 4 * (nbytes + ALIGNMENT) and _alone(self._owners, i):
                return self._owners[i]
        if len(self._owners) >= MOST:
            idle = [i for i in range(len(self._owners)) if _alone(self._owners, i)]
            # One that is in use may leave the list too: its users keep it alive.
            del self._owners[idle[0] if idle else 0]
        self._owners.append(np.empty(nbytes + ALIGNMENT, np.uint8))
        return self._owners[-1]


def _references(owners: list[Array], i: int) -> int:
    return sys.getrefcount(owners[i])


# What an array has that only its list refers to: this differs between versions of Python.
_ALONE = _references([np.empty(0, np.uint8)], 0)
_COUNTED = getattr(sys, "_is_gil_enabled", lambda: True)()


def _alone(owners: list[Array], i: int) -> bool:
    return _COUNTED and _references(owners, i) <= _ALONE
