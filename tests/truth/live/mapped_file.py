"""A file of 64 MiB mapped into memory, half of it read."""

import tempfile

import numpy as np
from wait import ready

with tempfile.NamedTemporaryFile(suffix=".prices") as file:
    file.truncate(64 * 2**20)
    data = np.memmap(file.name, dtype=np.uint8, mode="r+")
    data[:] = 1
    data.flush()
    read = int(data[: 32 * 2**20].sum())
    ready()
