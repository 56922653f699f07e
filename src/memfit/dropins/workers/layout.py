"""Observations in shared memory, handed out without a copy as long as nobody can notice.

A slot holds one observation of every env, array by array. There are a few slots, so that what
was handed out stays as it is while the workers write the next ones: a slot is used again only
when its arrays are gone. Where all slots are held, a copy is handed out. Rewards and flags follow.
What is no array (texts, graphs) does not lie here but travels in messages.
"""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from memfit.errors import UsageError

ALIGN = 64
PAGE = 4096
REWARD_BYTES = 8
# Ended or terminated; truncated; the type of the reward; whether a note was sent.
FLAGS = 4
# Three are handed out in turn, as stable-baselines3 holds up to two while it steps; what lies
# in the last one is copied.
SLOTS = 4

ARRAYS = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
Path = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """One array of an observation; `offset` is where it begins in a slot."""

    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int

    def array(self, memory: Any, start: int, n_envs: int) -> NDArray[Any]:
        """This array of all envs in a slot that begins at `start`; it has no other owner."""
        shape = (n_envs, *self.shape)
        count = int(np.prod(shape))
        if count == 0:
            return np.empty(shape, self.dtype)
        found = np.frombuffer(memory, self.dtype, count, start + self.offset)
        return found.reshape(shape)


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The bytes of all slots, rewards and flags."""

    n_envs: int
    leaves: tuple[Leaf, ...]
    others: tuple[Path, ...]
    slots: int
    slot_bytes: int

    @property
    def rewards_at(self) -> int:
        return self.slots * self.slot_bytes

    @property
    def flags_at(self) -> int:
        return self.rewards_at + _up(self.n_envs * REWARD_BYTES, ALIGN)

    @property
    def nbytes(self) -> int:
        return _up(self.flags_at + self.n_envs * FLAGS, PAGE)

    def rewards(self, memory: Any) -> NDArray[np.float64]:
        return np.frombuffer(memory, np.float64, self.n_envs, self.rewards_at)

    def flags(self, memory: Any) -> NDArray[np.uint8]:
        found = np.frombuffer(memory, np.uint8, self.n_envs * FLAGS, self.flags_at)
        return found.reshape(self.n_envs, FLAGS)


def lay_out(space: spaces.Space[Any], n_envs: int, slots: int = SLOTS) -> Layout:
    """The layout for observations of a space."""
    leaves: list[Leaf] = []
    others: list[Path] = []
    offset = 0
    for path, part in _parts(space, ()):
        if not isinstance(part, ARRAYS):
            others.append(path)
            continue
        dtype = np.dtype(part.dtype)
        shape = tuple(part.shape or ())
        leaves.append(Leaf(path=path, shape=shape, dtype=dtype, offset=offset))
        offset = _up(offset + n_envs * int(np.prod(shape)) * dtype.itemsize, ALIGN)
    return Layout(
        n_envs=n_envs, leaves=tuple(leaves), others=tuple(others), slots=slots, slot_bytes=offset
    )


class Slots:
    """The training's side of the shared memory."""

    def __init__(self, space: spaces.Space[Any], n_envs: int, fd: int) -> None:
        self.layout = lay_out(space, n_envs)
        self.copies = 0
        os.ftruncate(fd, self.layout.nbytes)
        self._memory = mmap.mmap(fd, self.layout.nbytes)
        self.rewards = self.layout.rewards(self._memory)
        self.flags = self.layout.flags(self._memory)
        self._space = space
        self._held: list[list[weakref.ref[Any]]] = [[] for _ in range(self.layout.slots)]

    def release(self) -> None:
        """Forget the memory: it goes with the last array that was handed out."""
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


def _parts(space: spaces.Space[Any], path: Path) -> Iterator[tuple[Path, spaces.Space[Any]]]:
    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            yield from _parts(part, (*path, key))
    elif isinstance(space, spaces.Tuple):
        for i, part in enumerate(space.spaces):
            yield from _parts(part, (*path, i))
    else:
        yield path, space


def assemble(space: spaces.Space[Any], find: Callable[[Path], Any], path: Path = ()) -> Any:
    """A batch of observations in the structure of a space."""
    if isinstance(space, spaces.Dict):
        return {key: assemble(part, find, (*path, key)) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(assemble(part, find, (*path, i)) for i, part in enumerate(space.spaces))
    return find(path)


def pick(obs: Any, path: Path) -> Any:
    """The part of an observation at a path."""
    for step in path:
        try:
            obs = obs[step]
        except (KeyError, IndexError, TypeError) as error:
            raise UsageError(
                f"the observation has no part {step!r} that its observation_space declares "
                f"({type(error).__name__}). Return every part of the space"
            ) from error
    return obs


def checked(value: Any, leaf: Leaf) -> NDArray[Any]:
    """An array that may be written to a leaf without a change of its numbers.

    Floats of another precision are cast, as stable-baselines3's DummyVecEnv does.
    """
    name = "".join(f"[{step!r}]" for step in leaf.path)
    found = np.asarray(value)
    if found.shape != leaf.shape:
        raise UsageError(
            f"the observation{name} has shape {found.shape}, but its observation_space says "
            f"{leaf.shape}. Return what the space declares, or declare what is returned"
        )
    if not np.can_cast(found.dtype, leaf.dtype, "same_kind"):
        with np.errstate(all="ignore"):
            same = found.dtype != np.object_ and np.array_equal(found.astype(leaf.dtype), found)
        if not same:
            raise UsageError(
                f"the observation{name} has dtype {found.dtype} and numbers that its "
                f"observation_space's {leaf.dtype} cannot hold. Return what the space declares, "
                "or declare what is returned"
            )
    return found


def _up(size: int, to: int) -> int:
    return -(-size // to) * to
