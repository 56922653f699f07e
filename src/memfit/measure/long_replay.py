"""Replay long sequences of allocations: malloc is looked at only where it may be at a new height.

Asking malloc for its footprint takes longer the more free blocks it has. In a rollout that keeps
thousands of blocks, most of the time would go into asking.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from statistics import mean

from memfit.measure.replay import Alloc, Growth, Malloc, Moment, Step, with_companions

# Between two looks malloc can grow by no more than was asked for: this share of the most alive.
_UNSEEN = 0.01
SEEDS = 4


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


def replay_often(steps: Sequence[Step], seeds: int = SEEDS) -> dict[str, Growth]:
    """Replay a sequence several times, each in a fork that has malloc as this process has it."""
    pipes = [_fork_replay(steps, seed) for seed in range(seeds)]
    found = [_collect(pid, reader) for pid, reader in pipes]
    return {
        moment: Growth(
            mean=round(mean(one[moment] for one in found)), most=max(one[moment] for one in found)
        )
        for moment in found[0]
    }


def _fork_replay(steps: Sequence[Step], seed: int) -> tuple[int, int]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    try:
        os.write(writer, json.dumps(replay(with_companions(steps, seed))).encode())
    finally:
        os._exit(0)


def _collect(pid: int, reader: int) -> dict[str, int]:
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(pid, 0)
    found: dict[str, int] = json.loads(data)
    return found
