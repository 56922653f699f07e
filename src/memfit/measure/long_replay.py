"""Replay sequences of allocations in forks that were made before anything else disturbed malloc.

A recording leaves much free memory behind in malloc, which a replay would use up before it grows.
So processes are forked while malloc is as the run's own process has it; they wait until the
sequence is known. And malloc is looked at only where it may be at a new height: asking for its
footprint takes longer the more free blocks it has.
"""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from memfit.measure.replay import Alloc, Growth, Malloc, Moment, Step, with_companions

# Between two looks malloc can grow by no more than was asked for: this share of the most alive.
_UNSEEN = 0.01


def replay(steps: Iterable[Step]) -> dict[str, int]:
    """The most that a sequence adds to malloc's footprint at each moment, over what it is now."""
    malloc = Malloc()
    blocks: dict[object, tuple[int, int]] = {}
    before = malloc.footprint()
    found: dict[str, int] = {}
    refused = alive = most = unseen = 0
    moment = ""

    def look() -> None:
        growth = malloc.footprint() - before + refused
        if moment:
            found[moment] = max(found.get(moment, growth), growth)

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
    return found


class Waiting:
    """Forks of this process as it is now, each of which replays one sequence when it is told."""

    def __init__(self, count: int, steps: Callable[..., Iterable[Step]]) -> None:
        self._steps = steps
        self._forks: list[tuple[int, int, int]] = []
        for _ in range(count):
            self._forks.append(self._fork())

    def replay(self, told: Mapping[str, Any], seeds: int) -> dict[str, Growth]:
        """Replay `steps(**told)` in so many of the forks, each with its own draws."""
        used = [self._forks.pop() for _ in range(seeds)]
        for seed, (_, writer, _) in enumerate(used):
            with os.fdopen(writer, "wb") as pipe:
                data = pickle.dumps((told, seed))
                pipe.write(len(data).to_bytes(8, "big") + data)
        found = [_collect(pid, reader) for pid, _, reader in used]
        return {
            moment: Growth(
                mean=sum(one[moment] for one in found) // len(found),
                most=max(one[moment] for one in found),
            )
            for moment in found[0]
        }

    def dismiss(self) -> None:
        """End the forks that were not needed."""
        for pid, writer, reader in self._forks:
            os.close(writer)
            os.close(reader)
            os.waitpid(pid, 0)
        self._forks = []

    def _fork(self) -> tuple[int, int, int]:
        told_reader, told_writer = os.pipe()
        found_reader, found_writer = os.pipe()
        pid = os.fork()
        if pid:
            os.close(told_reader)
            os.close(found_writer)
            return pid, told_writer, found_reader
        try:
            os.close(told_writer)
            os.close(found_reader)
            self._wait(told_reader, found_writer)
        finally:
            os._exit(0)

    def _wait(self, told_reader: int, found_writer: int) -> None:
        for _, writer, reader in self._forks:  # those of the forks made before this one
            os.close(writer)
            os.close(reader)
        with os.fdopen(told_reader, "rb") as pipe:
            data = pipe.read(int.from_bytes(pipe.read(8), "big"))
        if data:
            told, seed = pickle.loads(data)
            found = replay(with_companions(self._steps(**told), seed))
            os.write(found_writer, json.dumps(found).encode())


def _collect(pid: int, reader: int) -> dict[str, int]:
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(pid, 0)
    found: dict[str, int] = json.loads(data)
    return found
