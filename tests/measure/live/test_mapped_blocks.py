"""Arrays are found from outside, and the blocks that malloc mapped for them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from memfit.measure.kernel.mappings import Mapping, Pagemap, mappings
from memfit.measure.kernel.process_memory import ProcessMemory
from memfit.measure.live.mapped_blocks import MappedBlocks
from memfit.measure.live.numpy_arrays import data_of_arrays

MIB = 2**20


@contextmanager
def own() -> Iterator[tuple[list[Mapping], Pagemap, ProcessMemory]]:
    """This process, read as if from outside."""
    pages = Pagemap(os.getpid())
    with ProcessMemory(os.getpid()) as memory:
        yield mappings(os.getpid()), pages, memory
    pages.close()


def test_arrays_that_own_their_numbers_are_found() -> None:
    array = np.ones(100_000)
    view = array[50_000:]
    borrowed = np.frombuffer(bytearray(800_000))
    with own() as (maps, pages, memory):
        small = [(m.start, m.end) for m in maps if m.writable and (m.nameless or "heap" in m.path)]
        found = data_of_arrays(small, maps, pages, memory)
    assert array.ctypes.data in found
    assert view.ctypes.data not in found and borrowed.ctypes.data not in found


def test_no_array_is_found_without_numpy() -> None:
    with own() as (maps, pages, memory):
        others = [m for m in maps if "_multiarray_umath" not in m.path]
        small = [(m.start, m.end) for m in maps if m.nameless and m.writable]
        assert not len(data_of_arrays(small, others, pages, memory))


@pytest.mark.parametrize("filled", [0.0, 0.25, 1.0])
def test_a_mapped_block_has_its_place_and_what_is_resident_of_it(filled: float) -> None:
    array = np.zeros(48 * MIB, dtype=np.uint8)  # more than malloc ever keeps in its heap
    array[: round(filled * array.nbytes)] = 1
    place = array.ctypes.data
    with own() as (maps, pages, memory):
        found = MappedBlocks(maps, pages, memory).pointed_to(words(place, place, place + 64))
        ((start, size, resident),) = found
    assert start <= place and place + array.nbytes <= start + size
    # A huge page may be more than was asked for.
    assert filled * array.nbytes <= resident <= filled * array.nbytes + 3 * MIB


def test_no_block_comes_twice() -> None:
    array = np.ones(48 * MIB, dtype=np.uint8)
    with own() as (maps, pages, memory):
        blocks = MappedBlocks(maps, pages, memory)
        assert len(list(blocks.pointed_to(words(array.ctypes.data, array.ctypes.data)))) == 1
        assert not list(blocks.pointed_to(words(array.ctypes.data)))


def test_what_points_elsewhere_finds_nothing() -> None:
    array = np.full(48 * MIB, 3, dtype=np.uint8)
    middle = array.ctypes.data + 24 * MIB
    with own() as (maps, pages, memory):
        blocks = MappedBlocks(maps, pages, memory)
        assert not list(blocks.pointed_to(words(0, 1, middle, 2**63, 2**64 - 1)))
        assert not list(MappedBlocks([], pages, memory).pointed_to(words(array.ctypes.data)))


def words(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.uint64)
