"""malloc in a known state: these tests ask what it takes from the system."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest

from memfit.measure.survey.malloc_replay import Malloc
from memfit.units import MIB

_M_MMAP_THRESHOLD = -3


@pytest.fixture(autouse=True)
def _nothing_free() -> Iterator[None]:
    """Use up the large free blocks that other tests of this process have left.

    Blocks of a MiB or more are mappings of their own from then on, unless one of that size is free.
    """
    malloc = Malloc()
    ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, MIB)
    held, size = [], 1024 * MIB
    while size >= MIB:
        before = malloc.footprint()
        block = malloc.allocate(size, aligned=False)
        if malloc.footprint() > before:  # it came from the system: none of this size is free
            malloc.free(block)
            size //= 2
        else:
            held.append(block)
    yield
    for block in held:
        malloc.free(block)
