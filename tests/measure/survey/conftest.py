"""malloc in a known state: these tests ask what it takes from the system."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import pytest

from memfit.measure.survey.malloc import Malloc
from memfit.units import MIB

_M_MMAP_THRESHOLD = -3


def _data_pages() -> int:
    """Pages of private memory that this process may write, as the kernel counts them."""
    return int(Path("/proc/self/statm").read_text().split()[5])


@pytest.fixture(autouse=True)
def _nothing_free() -> Iterator[None]:
    """Use up the large free blocks that other tests of this process have left.

    Blocks of a MiB or more are mappings of their own from then on, unless one of that size is free.
    """
    malloc = Malloc()
    ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, MIB)
    held, size = [], 1024 * MIB
    while size >= MIB:
        before = _data_pages()
        block = malloc.allocate(size)
        if _data_pages() > before:  # it came from the system: none of this size is free
            malloc.free(block)
            size //= 2
        else:
            held.append(block)
    yield
    for block in held:
        malloc.free(block)
