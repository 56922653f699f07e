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
import mmap
import os
import random
from array import array
from collections.abc import Iterable
from dataclasses import dataclass

_DRAWN = (40_000, 90_000, 150_000, 300_000, 700_000, 1_500_000)
SEEDS = 6
_AT_ONCE = 3  # each fork holds a few MiB of its own
_MORE_THAN_ANY_TOP = 2**40

# malloc is looked at only where it may be at a new height: asking for its footprint takes longer
# the more free blocks it has. Between two looks it can grow by this share of the most alive.
_UNSEEN = 0.01
# Work that repeats has settled when it has not grown by this share for so many times.
_GROWN, _QUIET = 0.002, 3


@dataclass(slots=True)  # made by the hundred thousand: frozen ones take twice as long
class Alloc:
    """Ask for a block under a name; `aligned` as torch's allocator does, else as numpy does."""

    name: object
    bytes: int
    aligned: bool = False


@dataclass(slots=True)
class Free:
    """Give a block back."""

    name: object


@dataclass(slots=True)
class Moment:
    """From here on, growth counts for this moment of the run."""

    name: str


@dataclass(slots=True)
class IterationEnd:
    """An iteration of repeating work ends: where the last ones added nothing, no other will."""


Step = Alloc | Free | Moment | IterationEnd
_PLAIN, _ALIGNED, _FREE, _MOMENT, _END = range(5)


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

    def allocate(self, size: int, aligned: bool) -> int:
        """A block's address, or 0 where the system refuses so much address space."""
        return (self._libc.memalign(64, size) if aligned else self._libc.malloc(size)) or 0

    def free(self, address: int) -> None:
        self._libc.free(address)

    def disturb(self, draw: random.Random) -> None:
        """Let a few blocks of any size come, and most of them go again."""
        blocks = [self.allocate(draw.choice(_DRAWN), aligned=False) for _ in range(12)]
        for i in draw.sample(range(12), 9):
            self.free(blocks[i])

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


@dataclass(frozen=True, kw_only=True)
class StepNumbers:
    """Steps as numbers, three each: what is done, to which block or in which moment, and bytes.

    Made before a replay begins: while it runs, nothing but the replay may ask malloc for anything.
    """

    numbers: memoryview
    blocks: int
    moments: tuple[str, ...]

    @classmethod
    def of(cls, steps: Iterable[Step]) -> StepNumbers:
        numbers = array("q")
        blocks: dict[object, int] = {}
        moments: dict[str, int] = {}
        for step in steps:
            if isinstance(step, Alloc):
                blocks[step.name] = len(blocks)
                kind = _ALIGNED if step.aligned else _PLAIN
                numbers.extend((kind, blocks[step.name], step.bytes))
            elif isinstance(step, Free):
                numbers.extend((_FREE, blocks[step.name], 0))
            elif isinstance(step, Moment):
                numbers.extend((_MOMENT, moments.setdefault(step.name, len(moments)), 0))
            else:
                numbers.extend((_END, 0, 0))
        return cls(numbers=memoryview(numbers), blocks=len(blocks), moments=tuple(moments))


def replay(steps: StepNumbers, seed: int | None = None) -> dict[str, int]:
    """The most that steps add to malloc's footprint at each moment, over what it is now.

    With a seed, on another heap: what it looks like when training begins differs from run to run.
    """
    malloc = Malloc()
    numbers = steps.numbers
    room = mmap.mmap(-1, 16 * max(1, steps.blocks))  # addresses and sizes, out of malloc's way
    blocks = memoryview(room).cast("q")
    before = malloc.footprint()
    if seed is not None:
        malloc.disturb(random.Random(seed))
    found: dict[str, int] = {}
    # `refused` is more than the system would even reserve: counted as asked for.
    refused = alive = most = unseen = quiet = highest = 0
    moment = ""

    def look() -> None:
        growth = malloc.footprint() - before + refused
        if moment:
            found[moment] = max(found.get(moment, growth), growth)

    for i in range(0, len(numbers), 3):
        kind, which = numbers[i], 2 * numbers[i + 1]
        if kind <= _ALIGNED:
            size = numbers[i + 2]
            address = malloc.allocate(max(size, 1), kind == _ALIGNED)
            blocks[which], blocks[which + 1] = address, size
            refused += 0 if address else size
            alive += size
            unseen += size
            most = max(most, alive)
            if unseen > _UNSEEN * most:
                unseen = 0
                look()
        elif kind == _FREE:
            address, size = blocks[which], blocks[which + 1]
            blocks[which] = blocks[which + 1] = 0
            alive -= size
            if address:
                malloc.free(address)
            else:
                refused -= size
        elif kind == _MOMENT:
            look()
            moment = steps.moments[numbers[i + 1]]
            look()
        else:
            look()
            quiet = quiet + 1 if sum(found.values()) <= highest * (1 + _GROWN) else 0
            highest = max(highest, sum(found.values()))
            if quiet == _QUIET:
                break
    look()
    for which in range(0, len(blocks), 2):
        malloc.free(blocks[which])
    return found


@dataclass(frozen=True, kw_only=True)
class HeapGrowth:
    """What a sequence adds at one moment: on average over the draws, and at the most."""

    mean: int
    most: int

    @property
    def likely(self) -> int:
        """A run goes through many more minibatches than a replay does: above the mean."""
        return self.mean + (self.most - self.mean) // 3


def replay_often(steps: StepNumbers, seeds: int = SEEDS) -> dict[str, HeapGrowth]:
    """Replay steps several times, each in a fork that has malloc as this process has it."""
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


def _fork_replay(steps: StepNumbers, seed: int) -> tuple[int, int]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    try:
        os.write(writer, json.dumps(replay(steps, seed)).encode())
    finally:
        os._exit(0)


def _collect(pid: int, reader: int) -> dict[str, int]:
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(pid, 0)
    found: dict[str, int] = json.loads(data)
    return found
