"""Observations in shared memory, handed out without a copy as long as nobody can notice.

What was handed out stays as it is for as long as anything refers to it: its slot is used again
only when its arrays are gone. Where all slots are held, a copy is handed out.
"""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from memfit.dropins.workers.layout import Path, assemble, lay_out


class Slots:
    """The training's side of the shared memory."""

    def __init__(self, space: spaces.Space[Any], n_envs: int) -> None:
        self.layout = lay_out(space, n_envs)
        self.copies = 0
        self.fd = os.memfd_create("memfit-observations", os.MFD_CLOEXEC)
        os.ftruncate(self.fd, self.layout.nbytes)
        self._memory = mmap.mmap(self.fd, self.layout.nbytes)
        self.rewards = self.layout.rewards(self._memory)
        self.flags = self.layout.flags(self._memory)
        self._space = space
        self._held: list[list[weakref.ref[Any]]] = [[] for _ in range(self.layout.slots)]

    def close_fd(self) -> None:
        os.close(self.fd)
        self.fd = -1

    def release(self) -> None:
        """Forget the memory: it goes with the last array that was handed out."""
        if self.fd >= 0:
            self.close_fd()
        del self._memory, self.rewards, self.flags

    def free(self) -> int:
        """The first slot of which nothing is held any more, else the one that is copied."""
        for slot, held in enumerate(self._held[:-1]):
            if all(ref() is None for ref in held):
                return slot
        return len(self._held) - 1

    def take(
        self, slot: int, others: Sequence[list[Any]], batch: Callable[[list[Any]], Any]
    ) -> Any:
        """The observations of a slot in the structure of the space.

        `others` has the parts of each env that are no arrays, for `batch` to put together.
        """
        layout = self.layout
        copied = slot == layout.slots - 1
        self.copies += copied
        held = []
        found: dict[Path, Any] = {}
        for leaf in layout.leaves:
            array: NDArray[Any] = leaf.array(self._memory, slot * layout.slot_bytes, layout.n_envs)
            if copied:
                array = np.array(array)
            elif array.base is not None:
                # Every view of the array, and every tensor made of it, holds this base.
                held.append(weakref.ref(array.base))
            found[leaf.path] = array
        self._held[slot] = held
        for n, path in enumerate(layout.others):
            found[path] = batch([parts[n] for parts in others])
        if layout.leaves and not layout.leaves[0].path:
            return found[()]
        return assemble(self._space, found.__getitem__)
