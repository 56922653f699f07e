"""Steps a case by itself, and prints what the kernel counts for a frame: the truth of a leak.

Nothing of memfit is loaded: the loop is the plain one, and the readings are the kernel's PSS.
"""

from __future__ import annotations

import gc
import importlib
import json
import math
import os
import random
import resource
import sys
import time
from itertools import pairwise
from typing import Any

from benchmarks.leaks.cases import make

_IMPORTED = ("gymnasium.vector", "sqlite3", "xml.dom.minidom")
_AT_FIRST = 6 << 20
# Growth between the two readings, the long run: so much is enough, and so much is waited for, up to
# so many times the seconds.
_ENOUGH, _LEAST, _LATEST = 64 << 20, 24 << 20, 4
# Threads and files that are left lying about: what was free is used up after the first ones.
_THINGS_AT_FIRST, _MOST_THINGS, _SOME_THINGS = 800, 2000, 100


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


def mean(points: list[tuple[int, int]]) -> float:
    """Bytes a frame, as the mean over the last doubling of the frames.

    A table that doubles is met at each of its stages over such a stretch, wherever it ends.
    """
    late = [(frames, grown) for frames, grown in points if 2 * frames >= points[-1][0]]
    if len(late) == 1:
        return late[0][1] / late[0][0]
    parts = [
        (math.log(b / a), (grown_a / a + grown_b / b) / 2)
        for (a, grown_a), (b, grown_b) in pairwise(late)
    ]
    return sum(weight * value for weight, value in parts) / sum(weight for weight, _ in parts)


def main(family: str, seed: int, seconds: float, imports: int) -> None:
    """Print bytes a frame and an episode as JSON."""
    for name in _IMPORTED[:imports]:
        importlib.import_module(name)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    env, draw = make(family, seed), random.Random(seed)
    episodes(env, 60, draw)
    if gc.isenabled():
        gc.collect()
    begin, begun = held(), time.monotonic()
    while time.monotonic() - begun < seconds / 2:
        things = _things()
        if held() - begin >= _AT_FIRST and not _SOME_THINGS < things < _THINGS_AT_FIRST:
            break
        if things >= _THINGS_AT_FIRST:
            break
        episodes(env, 20, draw)  # which goes where memory was free
    begin, begun = held(), time.monotonic()
    frames = played = 0
    points: list[tuple[int, int]] = []
    while (now := held() - begin) < _ENOUGH:
        late = time.monotonic() - begun
        if late >= seconds and (now >= _LEAST or late >= _LATEST * seconds):
            break
        frames += episodes(env, 20, draw)
        played += 20
        points.append((frames, held() - begin))
        if _things() > _MOST_THINGS:
            break
    if gc.isenabled():
        gc.collect()
    points[-1] = frames, held() - begin
    per_frame = mean(points)
    print(
        json.dumps(
            {
                "truth_grown": points[-1][1],
                "truth_episodes": played,
                "truth_per_frame": per_frame,
                "truth_per_episode": per_frame * frames / played,
            }
        )
    )
    sys.stdout.flush()
    os._exit(0)  # threads of a case never end


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
