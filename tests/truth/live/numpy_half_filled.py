"""A buffer of 200 MiB of which 80 MiB are filled, and 40 MiB of small arrays."""

import numpy as np
from wait import ready

buffer = np.zeros((200, 2**20), dtype=np.uint8)
buffer[:80] = 1
small = [np.ones(1024, dtype=np.float32) for _ in range(10_000)]
ready()
