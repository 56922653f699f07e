"""Steps a case by itself, and prints what the kernel counts for a frame: the truth of a leak.

Nothing of memfit is loaded: the loop is the plain one, and the readings are the kernel's PSS.
"""

from __future__ import annotations

import gc
import json
import os
import random
import sys
import time
from typing import Any

from benchmarks.leaks.cases import make

_AT_FIRST = 6 << 20
_ENOUGH = 64 << 20  # bytes of growth between the two readings: the long run
_MOST_THINGS = 300  # threads and files that are left lying about


def held() -> int:
    """The PSS of this process without files."""
    found = 0
    with open("/proc/self/smaps_rollup") as file:
        for line in file:
            if line.startswith(("Pss_Anon:", "Pss_Shmem:")):
                found += 1024 * int(line.split()[1])
    return found


def _things() -> int:
    return len(os.listdir("/proc/self/task")) + len(os.listdir("/proc/self/fd"))


def episodes(env: Any, count: int, draw: random.Random) -> int:
    """Play so many episodes; the frames that they had."""
    frames = 0
    for _ in range(count):
        env.reset()
        over = False
        while not over:
            _, _, terminated, truncated, _ = env.step(draw.randrange(4))
            over = terminated or truncated
            frames += 1
    return frames


def main(family: str, seed: int, seconds: float) -> None:
    """Print bytes a frame and an episode as JSON."""
    env, draw = make(family, seed), random.Random(seed)
    episodes(env, 60, draw)
    if gc.isenabled():
        gc.collect()
    begin, begun = held(), time.monotonic()
    while time.monotonic() - begun < seconds / 2 and held() - begin < _AT_FIRST:
        episodes(env, 20, draw)  # which goes where memory was free
        if _things() > _MOST_THINGS // 2:
            break
    begin, begun = held(), time.monotonic()
    frames = played = 0
    while time.monotonic() - begun < seconds and held() - begin < _ENOUGH:
        frames += episodes(env, 20, draw)
        played += 20
        if _things() > _MOST_THINGS:
            break
    if gc.isenabled():
        gc.collect()
    grown = held() - begin
    print(
        json.dumps(
            {
                "truth_grown": grown,
                "truth_episodes": played,
                "truth_per_frame": grown / frames,
                "truth_per_episode": grown / played,
            }
        )
    )
    sys.stdout.flush()
    os._exit(0)  # threads of a case never end


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
