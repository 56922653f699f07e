"""Copies of heaps and the blocks in them, on heaps of known content."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pytest

from memfit.measure.kernel.mappings import Mapping
from memfit.measure.kernel.proc import PAGE
from memfit.measure.kernel.process_memory import ProcessMemory
from memfit.measure.live.heap import HeapBlocks, HeapCopy, copy_main, copy_of

START = 0x5555_0000_0000
IN_USE = 1


def heap_of(*blocks: tuple[int, bool]) -> np.ndarray:
    """malloc's heap: blocks of so many bytes, each in use or free; the last is what is left."""
    words = np.zeros(sum(size for size, _ in blocks) // 8, dtype=np.uint64)
    at, before = 0, True
    for size, used in blocks:
        words[at // 8 + 1] = size | (IN_USE if before else 0)
        at, before = at + size, used
    return words


def test_blocks_lie_one_after_the_other_with_their_sizes() -> None:
    blocks = HeapBlocks(
        START, heap_of((32, True), (64, False), (48, True), (128, True), (80, True))
    )
    assert blocks.count == 5
    assert blocks.offsets.tolist() == [0, 32, 96, 144, 272, 352]
    assert blocks.sizes.tolist() == [32, 64, 48, 128, 80]
    assert blocks.in_use.tolist() == [True, False, True, True, False]


@pytest.mark.parametrize("words", [np.zeros(0, dtype=np.uint64), np.zeros(1, dtype=np.uint64)])
def test_a_heap_without_room_for_a_head_has_no_block(words: np.ndarray) -> None:
    blocks = HeapBlocks(START, words)
    assert blocks.count == 0 and not len(blocks.in_use)


def test_a_word_points_to_the_block_into_whose_data_it_leads() -> None:
    blocks = HeapBlocks(START, heap_of((32, True), (64, True), (48, True), (32, True)))

    def pointed(*offsets: int) -> list[int]:
        words = np.array([START + o for o in offsets], dtype=np.uint64)
        return [int(found) for found in blocks.pointed_to(words)]

    assert pointed(16) == [0]
    assert pointed(32 + 16, 32 + 60) == [1]
    assert pointed(96 + 16, 0 + 16, 96 + 24) == [0, 2]
    assert pointed(32, 96, 144) == []  # heads, to which only malloc's own lists point
    assert pointed(0, 8, 176, 10**9) == []
    assert blocks.pointed_to(np.array([0, 1, 2**64 - 1], dtype=np.uint64)).tolist() == []


def test_pointers_between_blocks_are_followed() -> None:
    words = heap_of((32, True), (64, True), (48, True), (32, True))
    first, second, third = START + 16, START + 32 + 16, START + 96 + 16
    words[16 // 8] = second  # the first block leads to the second,
    words[(32 + 24) // 8] = third  # which leads to the third
    words[(32 + 40) // 8] = first  # and back
    blocks = HeapBlocks(START, words)
    begins, leads_to = blocks.pointers()
    ways = [leads_to[a:b].tolist() for a, b in pairwise(begins)]
    assert [sorted(way) for way in ways] == [[1], [0, 2], [], []]
    assert second in blocks.words_of(np.array([0])) and third not in blocks.words_of(np.array([0]))
    assert len(blocks.words_of(np.array([1, 2]))) == (64 + 48) // 8
    assert len(blocks.words_of(np.array([], dtype=np.int64))) == 0
    blocks.blank(np.array([1]))
    assert blocks.pointers()[1].tolist() == [1]
    assert int(words[32 // 8 + 1]) & ~7 == 64  # its head stays


@pytest.mark.parametrize("nonsense", [0, 8, 24, 40, 2**40])
def test_a_size_that_makes_no_sense_is_passed_over(nonsense: int) -> None:
    """The process went on while its heap was copied."""
    words = heap_of((64, True), (96, True), *[(48, True)] * 80)
    words[64 // 8 + 1] = nonsense
    words[(64 + 32) // 8 + 1] = 32  # looks like a head, but no other follows on it
    blocks = HeapBlocks(START, words)
    assert blocks.offsets.tolist() == [0, 64, *range(160, 160 + 81 * 48, 48)]
    assert blocks.sizes[1] == 96


def test_where_no_blocks_follow_any_more_the_rest_is_one() -> None:
    words = heap_of((64, True), (32, True), (64, True))
    words[64 // 8 + 1] = words[96 // 8 + 1] = 0
    assert HeapBlocks(START, words).sizes.tolist() == [64, 96]


def test_what_is_in_memory_of_a_stretch_counts_pages_at_its_edges_by_part() -> None:
    there = np.array([True, False, True, True])
    copy = HeapCopy(start=START, words=np.zeros(4 * PAGE // 8, dtype=np.uint64), there=there)
    offsets = np.array([0, 0, PAGE, PAGE // 2, 2 * PAGE + 100, 100])
    sizes = np.array([4 * PAGE, PAGE, PAGE, 2 * PAGE, 50, 0])
    found = copy.resident(offsets, sizes).tolist()
    assert found == [3 * PAGE, PAGE, 0, PAGE // 2 + PAGE // 2, 50, 0]


@pytest.fixture
def block() -> Iterator[int]:
    """Eight pages of this process, of which 0, 1, 4 and 5 are in memory: each with its number."""
    held = mmap.mmap(-1, 8 * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    held.madvise(mmap.MADV_NOHUGEPAGE)
    for page in (0, 1, 4, 5):
        held[page * PAGE : (page + 1) * PAGE] = bytes([page + 1]) * PAGE
    view = ctypes.c_char.from_buffer(held)
    yield ctypes.addressof(view)
    del view
    held.close()


def copied(span: tuple[int, int], numbers: Sequence[tuple[int, int]] = ()) -> HeapCopy:
    with ProcessMemory(os.getpid()) as memory:
        return copy_of(span, memory, numbers)


def first_bytes(copy: HeapCopy) -> list[int]:
    return [int(byte) for byte in copy.words.view(np.uint8)[::PAGE]]


def test_a_copy_has_what_is_in_memory_and_zeros_elsewhere(block: int) -> None:
    copy = copied((block, block + 8 * PAGE))
    assert copy.there.tolist() == [True, True, False, False, True, True, False, False]
    assert first_bytes(copy) == [1, 2, 0, 0, 5, 6, 0, 0]
    assert copy.words.view(np.uint8)[5 * PAGE : 6 * PAGE].tolist() == [6] * PAGE
    # Reading has made no page.
    assert copied((block, block + 8 * PAGE)).there.sum() == 4


def test_pages_of_numbers_alone_are_not_read(block: int) -> None:
    span = block, block + 8 * PAGE
    copy = copied(span, [(block + PAGE // 2, block + 2 * PAGE), (block + 4 * PAGE, span[1])])
    assert first_bytes(copy) == [1, 0, 0, 0, 0, 0, 0, 0]  # the first is numbers only in part
    assert copy.there.sum() == 4
    assert first_bytes(copied(span, [(block - PAGE, span[1])])) == [1, 2, 0, 0, 5, 6, 0, 0]


def mapping(start: int, end: int, path: str) -> Mapping:
    return Mapping(start=start, end=end, perms="rw-p", inode=0, path=path)


def test_the_main_heap_is_all_its_mappings(block: int) -> None:
    """Parts of it may have been asked to be of huge pages."""
    maps = [
        mapping(block - PAGE, block, ""),
        mapping(block, block + 2 * PAGE, "[heap]"),
        mapping(block + 2 * PAGE, block + 6 * PAGE, "[heap]"),
        mapping(block + 6 * PAGE, block + 8 * PAGE, ""),
    ]
    with ProcessMemory(os.getpid()) as memory:
        found = copy_main(maps, memory)
        assert found is not None
        assert (found.start, first_bytes(found)) == (block, [1, 2, 0, 0, 5, 6])
        assert copy_main([maps[0], maps[-1]], memory) is None
        assert copy_main([mapping(START, START + 2**30 + PAGE, "[heap]")], memory) is None
    assert copy_main(maps, memory) is None  # nobody says what is there
