"""Three arrays of 16 MiB and one of 100 KiB, all replaced by new ones for each line that comes."""

import sys

import numpy as np

held = [np.ones(2 * 2**20) for _ in range(3)]
small = np.ones(12_800)
print("ready", flush=True)
for _ in sys.stdin:
    # The old ones stay until the new ones have their places.
    held, small = [array + 1 for array in held], small + 1
    print("moved", flush=True)
