"""A process that profiles an environment, and prints by how much it has grown meanwhile.

`kept` is the way of the assessment: every snapshot of the allocations is kept. `readings` is the
system's own profiler. `none` only steps the environment.
"""

from __future__ import annotations

import json
import sys
import tracemalloc

from memfit.systems.ninja.profiler import Profiler, resident
from memfit.systems.ninja.settings import EnvironmentConfig

FRAMES = 2_000


def main(way: str, snapshots: int) -> None:
    """Print the growth over the run as JSON."""
    if way != "none":
        tracemalloc.start()
    profiler = Profiler(EnvironmentConfig.for_parallel_training(), n_envs=1, seed=0)
    for _ in range(100):
        profiler.frame()
    kept = []
    before = resident()
    if way == "readings":
        profiler.memory(FRAMES, max(1, FRAMES // snapshots), lambda stage, share: None)
    else:
        for frame in range(1, FRAMES + 1):
            profiler.frame()
            if way == "kept" and frame % max(1, FRAMES // snapshots) == 0:
                kept.append(tracemalloc.take_snapshot())
    grown = resident() - before
    print(json.dumps({"way": way, "snapshots": snapshots, "grown_bytes": grown}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
