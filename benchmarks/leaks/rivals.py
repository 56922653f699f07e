"""Other tests for leaks on the same cases, written from their descriptions.

`python -m benchmarks.leaks.rivals WAY FAMILY SEED` prints whether it calls the case a leak.

tracemalloc   the statistic of RLlib's check: tracemalloc with 20 frames, the 100 sites with the
              most; a site is suspect that grew by 1,000 bytes or more where slope and correlation
              are (> 60, > .875), (> 20, > .9) or (> 10, > .95); suspects are tried again with
              more rounds
repeated      psutil's test: USS or the heap must keep growing, round after round, as the number of
              calls rises
snapshots     the first reading of USS against the last, with a tolerance of 1 MiB
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import random
import sys
import tracemalloc
from typing import Any

from benchmarks.leaks.bare import episodes
from benchmarks.leaks.cases import make

WAYS = ("tracemalloc", "repeated", "snapshots")
_OWN = (__file__, tracemalloc.__file__)
_WARM = 12
_FRAMES, _SITES = 20, 100
_REPEATS, _MORE = 10, 20  # readings of the statistic, and when it is tried again
_ROUNDS, _TOLERANCE = 5, 0
_SNAPSHOT_EPISODES, _LEAST = 60, 1 << 20


def uss() -> int:
    """What would be free if this process ended."""
    found = 0
    with open("/proc/self/smaps_rollup") as file:
        for line in file:
            if line.startswith(("Private_Clean:", "Private_Dirty:")):
                found += 1024 * int(line.split()[1])
    return found


def _suspects(env: Any, draw: random.Random, repeats: int) -> bool:
    import numpy as np

    table: dict[Any, list[float]] = {}
    for number in range(repeats):
        episodes(env, 4, draw)
        gc.collect()
        every = tracemalloc.take_snapshot().statistics("traceback")
        # Not what the test itself keeps, which would make each case a leak.
        sites = (site for site in every if site.traceback[-1].filename not in _OWN)
        for site in itertools.islice(sites, _SITES):
            row = table.setdefault(site.traceback, [0.0] * number)
            row.append(float(site.size))
        for row in table.values():
            row.extend([row[-1] if row else 0.0] * (number + 1 - len(row)))
    for row in table.values():
        if row[-1] - row[0] < 1000:
            continue
        steps = np.arange(len(row))
        slope = float(np.polyfit(steps, row, 1)[0])
        r = float(np.corrcoef(steps, row)[0, 1])
        if (slope > 60 and r > 0.875) or (slope > 20 and r > 0.9) or (slope > 10 and r > 0.95):
            return True
    return False


def by_tracemalloc(env: Any, draw: random.Random) -> bool:
    tracemalloc.start(_FRAMES)
    episodes(env, _WARM, draw)
    return _suspects(env, draw, _REPEATS) and _suspects(env, draw, _MORE)


def by_repeated(env: Any, draw: random.Random) -> bool:
    """More calls in each round; it is a leak if either grows by more each time."""
    episodes(env, _WARM, draw)
    before, calls = [0, 0], 10
    growing = [True, True]
    for _ in range(_ROUNDS):
        gc.collect()
        begin = _both()
        episodes(env, calls, draw)
        gc.collect()
        grown = [now - then for now, then in zip(_both(), begin, strict=True)]
        growing = [
            goes and more > max(_TOLERANCE, less)
            for goes, more, less in zip(growing, grown, before, strict=True)
        ]
        if not any(growing):
            return False
        before, calls = grown, calls + 10
    return True


def _both() -> list[int]:
    """USS, and what malloc has in use."""
    import psutil

    return [uss(), psutil.heap_info().heap_used]


def by_snapshots(env: Any, draw: random.Random) -> bool:
    begin = uss()
    episodes(env, _SNAPSHOT_EPISODES, draw)
    return uss() - begin > _LEAST


def main(way: str, family: str, seed: int) -> None:
    """Print what one of them says."""
    env, draw = make(family, seed), random.Random(seed)
    found = {"tracemalloc": by_tracemalloc, "repeated": by_repeated, "snapshots": by_snapshots}
    print(json.dumps({way: found[way](env, draw)}))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
