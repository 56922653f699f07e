"""Two actors that demand 200 MiB each, of which one holds 300; and an array in the object store."""

from __future__ import annotations

import sys
import time

import numpy as np
import ray
from numpy.typing import NDArray


class Modest:
    """Holds 30 MiB and reads what is shared."""

    def __init__(self) -> None:
        self.held = np.ones(30 << 17)

    def read(self, shared: NDArray[np.float64]) -> float:
        self.shared = shared
        return float(shared.sum() + self.held[0])


class Greedy(Modest):
    """Holds more than it demands."""

    def __init__(self) -> None:
        self.held = np.ones(300 << 17)


def main() -> None:
    """Hold until ended."""
    ray.init(address="auto", log_to_driver=False)
    actors = [
        ray.remote(num_cpus=0.5, memory=200 << 20)(kind).remote() for kind in (Modest, Greedy)
    ]
    shared = ray.put(np.ones(5 << 20))
    ray.get([actor.read.remote(shared) for actor in actors])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    time.sleep(300)


if __name__ == "__main__":
    main()
