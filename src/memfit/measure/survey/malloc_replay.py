"""Replays allocations through this machine's malloc, without touching the memory.

What a sequence of allocations adds to a process is more than the bytes asked for: malloc keeps
freed blocks, splits and fails to reuse them. No model of that is needed. The sequence is given to
the real malloc, in the state in which the run's own process has it, but nothing is written into
the blocks, so that they cost no memory, however large. The growth of the heap and of malloc's
mappings is what would be resident.
"""

from __future__ import annotations

import json
import mmap
import os
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

from memfit.measure.survey.cycle import ALIGNED, FREE, FREE_OLD, PLAIN
from memfit.measure.survey.malloc import ALIGNMENT, Malloc
from memfit.measure.survey.replay_steps import (
    ALLOC,
    FREE_KEPT,
    FREE_ONE,
    MOMENT,
    PLAY,
    Numbered,
    RunNumbers,
)

_AT_ONCE = 3  # each fork holds a few MiB of its own
# Work that repeats has settled when it has not grown by this share for so many times.
_GROWN, _QUIET = 0.002, 3
_DATA = 5  # the field of statm with the pages of private memory that may be written


class Replay:
    """A run that is being replayed in this process."""

    def __init__(self, run: RunNumbers, seed: int | None) -> None:
        self.found: dict[str, int] = {}
        self._run = run
        self._malloc = Malloc()
        # Addresses, out of malloc's way.
        self._blocks = memoryview(mmap.mmap(-1, 8 * max(1, run.blocks))).cast("q")
        self._refused: dict[int, int] = {}  # more than the system would even reserve
        self._moment = ""
        self._pages = os.open("/proc/self/statm", os.O_RDONLY)
        self._before = self._height()
        if seed is not None:  # what the heap looks like when training begins differs each time
            self._before += self._malloc.disturb(random.Random(seed))

    def play(self) -> dict[str, int]:
        """The most that the run adds at each moment, over what malloc holds now."""
        run = self._run
        quiet = highest = 0
        self._do(run.first)
        for steps in islice(cycle((run.odd, run.even)), run.iterations - 1):
            if quiet == _QUIET:
                break
            self._do(steps)
            reached = sum(self.found.values())
            quiet = quiet + 1 if reached <= highest * (1 + _GROWN) else 0
            highest = max(highest, reached)
        self._do(run.last)
        os.close(self._pages)
        return self.found

    def _height(self) -> int:
        """Bytes that this process has for its data: asking malloc itself takes long."""
        return int(os.pread(self._pages, 128, 0).split()[_DATA]) * mmap.PAGESIZE

    def _look(self) -> None:
        growth = self._height() - self._before + sum(self._refused.values())
        if self._moment:
            self.found[self._moment] = max(self.found.get(self._moment, growth), growth)

    def _do(self, steps: Iterable[Numbered]) -> None:
        for kind, *numbers in steps:
            if kind == PLAY:
                self._act(*numbers)
            elif kind == ALLOC:
                self._ask(*numbers)
            elif kind == FREE_ONE:
                self._give(*numbers)
            elif kind == FREE_KEPT:
                start, count, base = numbers
                for slot in self._run.tables[start : start + count]:
                    self._give(base + slot)
            self._look()
            if kind == MOMENT:
                self._moment = self._run.moments[numbers[0]]
                self._look()

    def _ask(self, place: int, size: int) -> None:
        address = self._malloc.allocate(size)
        self._blocks[place] = address
        if not address:
            self._refused[place] = size

    def _give(self, place: int) -> None:
        self._malloc.free(self._blocks[place])
        self._blocks[place] = 0
        self._refused.pop(place, None)

    def _act(self, start: int, count: int, base: int, old: int) -> None:
        """The acts of a table; written out, since there are millions of them."""
        tables, blocks, refused = self._run.tables, self._blocks, self._refused
        kinds, slots, sizes = (
            tables[start + i * count : start + (i + 1) * count] for i in range(3)
        )
        ask, ask_aligned, give = self._malloc.functions
        for kind, slot, size in zip(kinds, slots, sizes, strict=True):
            if kind == FREE:
                give(blocks[base + slot])
                if refused:
                    refused.pop(base + slot, None)
            elif kind <= ALIGNED:
                address = ask(size) if kind == PLAIN else ask_aligned(ALIGNMENT, size)
                blocks[base + slot] = address or 0
                if not address:
                    refused[base + slot] = size
            elif kind == FREE_OLD:
                give(blocks[old + slot])
                blocks[old + slot] = 0
                if refused:
                    refused.pop(old + slot, None)
            else:
                self._look()


@dataclass(frozen=True, kw_only=True)
class HeapGrowth:
    """What a sequence adds at one moment: on average over the draws, and at the most."""

    mean: int
    most: int

    @property
    def likely(self) -> int:
        """A run goes through many more minibatches than a replay does: above the mean."""
        return self.mean + (self.most - self.mean) // 3


def replay_often(run: RunNumbers, seeds: Sequence[int | None]) -> dict[str, HeapGrowth]:
    """Replay a run several times, each in a fork that has malloc as this process has it."""
    found: list[dict[str, int]] = []
    for first in range(0, len(seeds), _AT_ONCE):
        pipes = [_fork_replay(run, seed) for seed in seeds[first : first + _AT_ONCE]]
        found += [_collect(pid, reader) for pid, reader in pipes]
    return {
        moment: HeapGrowth(
            mean=sum(one[moment] for one in found) // len(found),
            most=max(one[moment] for one in found),
        )
        for moment in found[0]
    }


def _fork_replay(run: RunNumbers, seed: int | None) -> tuple[int, int]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    try:
        os.write(writer, json.dumps(Replay(run, seed).play()).encode())
    finally:
        os._exit(0)


def _collect(pid: int, reader: int) -> dict[str, int]:
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(pid, 0)
    found: dict[str, int] = json.loads(data)
    return found
