"""Arrays are found from outside, and the blocks that malloc mapped for them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from memfit.measure.kernel.mappings import Mapping, mappings
from memfit.measure.kernel.process_memory import ProcessMemory
from memfit.measure.live.mapped_blocks import MappedBlocks
from memfit.measure.live.numpy_arrays import data_of_arrays

MIB = 2**20
SIZE = 48 * MIB  # more than malloc ever keeps in a new process's heap

# A process of its own: in one that has run for long, malloc may have so much to give without a
# mapping.
HOLD = """
import sys
import numpy as np
array = np.zeros(int(sys.argv[1]), dtype=np.uint8)
array[: round(float(sys.argv[2]) * array.nbytes)] = 3
print(array.ctypes.data, flush=True)
sys.stdin.read()
"""


@contextmanager
def holding(filled: float) -> Iterator[tuple[int, list[Mapping], ProcessMemory]]:
    """A process that holds one large array, part of it filled, and where that is."""
    command = [sys.executable, "-c", HOLD, str(SIZE), str(filled)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        place = int(process.stdout.readline())
        with ProcessMemory(process.pid) as memory:
            yield place, mappings(process.pid), memory


@contextmanager
def own() -> Iterator[tuple[list[Mapping], ProcessMemory]]:
    """This process, read as if from outside."""
    with ProcessMemory(os.getpid()) as memory:
        yield mappings(os.getpid()), memory


def test_arrays_that_own_their_numbers_are_found() -> None:
    array = np.ones(100_000)
    view = array[50_000:]
    borrowed = np.frombuffer(bytearray(800_000))
    with own() as (maps, memory):
        small = [(m.start, m.end) for m in maps if m.writable and (m.nameless or "heap" in m.path)]
        found = data_of_arrays(small, maps, memory)
    assert array.ctypes.data in found
    assert view.ctypes.data not in found and borrowed.ctypes.data not in found


def test_no_array_is_found_without_numpy() -> None:
    with own() as (maps, memory):
        others = [m for m in maps if "_multiarray_umath" not in m.path]
        small = [(m.start, m.end) for m in maps if m.nameless and m.writable]
        assert not len(data_of_arrays(small, others, memory))


@pytest.mark.parametrize("filled", [0.0, 0.25, 1.0])
def test_a_mapped_block_has_its_place_and_what_is_resident_of_it(filled: float) -> None:
    with holding(filled) as (place, maps, memory):
        found = MappedBlocks(maps, memory).pointed_to(words(place, place, place + 64))
        ((start, size, resident),) = found
    assert start <= place and place + SIZE <= start + size
    # A huge page may be more than was asked for.
    assert filled * SIZE <= resident <= filled * SIZE + 3 * MIB


def test_no_block_comes_twice() -> None:
    with holding(1.0) as (place, maps, memory):
        blocks = MappedBlocks(maps, memory)
        assert len(list(blocks.pointed_to(words(place, place)))) == 1
        assert not list(blocks.pointed_to(words(place)))


def test_what_points_elsewhere_finds_nothing() -> None:
    with holding(1.0) as (place, maps, memory):
        blocks = MappedBlocks(maps, memory)
        assert not list(blocks.pointed_to(words(0, 1, place + SIZE // 2, 2**63, 2**64 - 1)))
        assert not list(MappedBlocks([], memory).pointed_to(words(place)))


def words(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.uint64)
