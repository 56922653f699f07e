"""A process that profiles an environment, and prints by how much it has grown meanwhile.

`kept` is the way of the assessment: every snapshot of the allocations is kept. `readings` is
`memfit profile`, which reads the process from outside. `none` only steps the environment.
"""

from __future__ import annotations

import json
import sys
import tracemalloc

import numpy as np

import memfit
from memfit.systems.ninja.env import NinjaEnv
from memfit.systems.ninja.settings import EnvironmentConfig
from memfit.tracking import tree_bytes

FRAMES = 2_000


def read_from_outside(snapshots: int) -> tuple[int, int]:
    """How often it was read, and what its process grew by from the first reading to the last.

    Readings that would take more than their share of the loop's time are left out.
    """
    every = max(1, FRAMES // snapshots)
    seen = memfit.profile("ninja", frames=FRAMES, every=every, envs=1, observe=False)
    full = [reading for reading in seen.readings if reading.full]
    return len(seen.readings), full[-1].held - full[0].held


def main(way: str, snapshots: int) -> None:
    """Print the growth over the run as JSON."""
    if way == "readings":
        count, grown = read_from_outside(snapshots)
        print(json.dumps({"way": way, "snapshots": count, "grown_bytes": grown}))
        return
    if way != "none":
        tracemalloc.start()
    env, draw = NinjaEnv(EnvironmentConfig.for_parallel_training()), np.random.default_rng(0)
    env.reset(seed=0)

    def frame() -> None:
        _, _, ended, timeout, _ = env.step(draw.integers(env.action_space.n))  # type: ignore[attr-defined]
        if ended or timeout:
            env.reset()

    for _ in range(100):
        frame()
    kept = []
    before = tree_bytes()
    for number in range(1, FRAMES + 1):
        frame()
        if way == "kept" and number % max(1, FRAMES // snapshots) == 0:
            kept.append(tracemalloc.take_snapshot())
    grown = tree_bytes() - before
    print(json.dumps({"way": way, "snapshots": snapshots, "grown_bytes": grown}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
