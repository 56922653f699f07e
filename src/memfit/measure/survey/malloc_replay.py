"""Replays allocations through this machine's malloc, without touching the memory.

What a sequence of allocations adds to a process is more than the bytes asked for: malloc keeps
freed blocks, splits and fails to reuse them. No model of that is needed. The sequence is given to
the real malloc, in the state in which the run's own process has it, but nothing is written into
the blocks, so that they cost no memory, however large. The growth of the heap and of malloc's
mappings is what would be resident.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

# A tensor or array is more than its data: small objects of its own are allocated beside it and die
# with it, some a little later. Where they land decides which freed blocks can be joined again, so
# they are replayed too, with sizes drawn from what such objects take.
_COMPANIONS = (96, 192, 200, 288, 400, 600)
_STAY = 0.01
_BEFORE = (40_000, 90_000, 150_000, 300_000, 700_000, 1_500_000)
SEEDS = 6
_AT_ONCE = 3  # each fork holds a few MiB of its own
_MORE_THAN_ANY_TOP = 2**40

# malloc is looked at only where it may be at a new height: asking for its footprint takes longer
# the more free blocks it has. Between two looks it can grow by this share of the most alive.
_UNSEEN = 0.01


@dataclass(frozen=True)
class Alloc:
    """Ask for a block under a name; `aligned` as torch's allocator does, else as numpy does."""

    name: object
    bytes: int
    aligned: bool = False


@dataclass(frozen=True)
class Free:
    """Give a block back."""

    name: object


@dataclass(frozen=True)
class Moment:
    """From here on, growth counts for this moment of the run."""

    name: str


Step = Alloc | Free | Moment


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
        self.available = all(hasattr(self._libc, name) for name in ("mallinfo2", "posix_memalign"))
        if not self.available:
            return
        libc = self._libc
        libc.mallinfo2.restype = _MallInfo2
        libc.malloc.restype = ctypes.c_void_p
        libc.malloc.argtypes = [ctypes.c_size_t]
        libc.free.argtypes = [ctypes.c_void_p]
        libc.free.restype = None
        libc.posix_memalign.argtypes = [
            ctypes.POINTER(ctypes.c_void_p),
            ctypes.c_size_t,
            ctypes.c_size_t,
        ]

    def allocate(self, size: int, aligned: bool) -> int:
        """A block's address, or 0 where the system refuses so much address space."""
        if not aligned:
            return self._libc.malloc(size) or 0
        pointer = ctypes.c_void_p()
        status = self._libc.posix_memalign(ctypes.byref(pointer), 64, size)
        return 0 if status else (pointer.value or 0)

    def free(self, address: int) -> None:
        self._libc.free(address)

    def footprint(self) -> int:
        """Bytes that malloc holds from the system: all its heaps plus single mappings."""
        info = self._libc.mallinfo2()
        return int(info.arena) + int(info.hblkhd)

    def free_bytes(self) -> int:
        """Bytes that malloc holds and nobody uses."""
        return int(self._libc.mallinfo2().fordblks) if self.available else 0

    def release(self, *, keep_top: bool = False) -> None:
        """Give the pages of free blocks back to the system.

        With `keep_top` the heap itself stays as it is, so that a replay finds what it would have.
        """
        if self.available:
            self._libc.malloc_trim(ctypes.c_size_t(_MORE_THAN_ANY_TOP if keep_top else 0))


def replay(steps: Iterable[Step]) -> dict[str, int]:
    """The most that a sequence adds to malloc's footprint at each moment, over what it is now."""
    malloc = Malloc()
    blocks: dict[object, tuple[int, int]] = {}
    before = malloc.footprint()
    found: dict[str, int] = {}
    # `refused` is more than the system would even reserve: counted as asked for.
    refused = alive = most = unseen = 0
    moment = ""

    def look() -> None:
        growth = malloc.footprint() - before + refused
        if moment:
            found[moment] = max(found.get(moment, growth), growth)

    try:
        for step in steps:
            if isinstance(step, Moment):
                look()
                moment = step.name
                look()
            elif isinstance(step, Alloc):
                address = malloc.allocate(max(step.bytes, 1), step.aligned)
                blocks[step.name] = address, step.bytes
                refused += 0 if address else step.bytes
                alive += step.bytes
                unseen += step.bytes
                most = max(most, alive)
                if unseen > _UNSEEN * most:
                    unseen = 0
                    look()
            else:
                address, size = blocks.pop(step.name)
                alive -= size
                if address:
                    malloc.free(address)
                else:
                    refused -= size
        look()
    finally:
        for address, _ in blocks.values():
            if address:
                malloc.free(address)
    return found


def with_companions(steps: Iterable[Step], seed: int) -> Iterator[Step]:
    """The same steps with the small objects that come and go with each block.

    Before them, a few blocks of any size come and go: what the heap looks like when training
    begins differs from run to run, and with it what follows.
    """
    draw = random.Random(seed)
    before = [draw.choice(_BEFORE) for _ in range(12)]
    for i, size in enumerate(before):
        yield Alloc(("before", i), size)
    for i in draw.sample(range(12), 9):
        yield Free(("before", i))
    for step in steps:
        if isinstance(step, Alloc):
            yield Alloc(("head", step.name), draw.choice(_COMPANIONS))
            yield Alloc(("tail", step.name), draw.choice(_COMPANIONS))
        yield step
        if isinstance(step, Free):
            for part in ("head", "tail"):
                if draw.random() > _STAY:
                    yield Free((part, step.name))


@dataclass(frozen=True, kw_only=True)
class HeapGrowth:
    """What a sequence adds at one moment: on average over the draws, and at the most."""

    mean: int
    most: int

    @property
    def likely(self) -> int:
        """A run goes through many more minibatches than a replay does: above the mean."""
        return self.mean + (self.most - self.mean) // 3


def replay_often(steps: Callable[[], Iterable[Step]], seeds: int = SEEDS) -> dict[str, HeapGrowth]:
    """Replay a sequence several times, each in a fork that has malloc as this process has it."""
    found: list[dict[str, int]] = []
    for first in range(0, seeds, _AT_ONCE):
        some = range(first, min(seeds, first + _AT_ONCE))
        pipes = [_fork_replay(steps, seed) for seed in some]
        found += [_collect(pid, reader) for pid, reader in pipes]
    return {
        moment: HeapGrowth(
            mean=sum(one[moment] for one in found) // len(found),
            most=max(one[moment] for one in found),
        )
        for moment in found[0]
    }


def _fork_replay(steps: Callable[[], Iterable[Step]], seed: int) -> tuple[int, int]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    try:
        os.write(writer, json.dumps(replay(with_companions(steps(), seed))).encode())
    finally:
        os._exit(0)


def _collect(pid: int, reader: int) -> dict[str, int]:
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(pid, 0)
    found: dict[str, int] = json.loads(data)
    return found
