"""What the allocator decides: known answers from torch's source, one by one."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.device.allocator_settings import AllocatorSettings, parse_settings
from memfit.device.caching_allocator import CachingAllocator, OutOfMemory
from memfit.units import KIB, MIB

SIZES = st.one_of(
    st.integers(1, 4 * KIB),
    st.integers(1, 3 * MIB),
    st.integers(MIB, 40 * MIB),
    st.sampled_from([512, MIB, MIB + 1, 10 * MIB, 10 * MIB - 1, 20 * MIB]),
)


def test_small_requests_share_a_segment_of_2_mib() -> None:
    allocator = CachingAllocator()
    first, second = allocator.malloc(100), allocator.malloc(100)
    assert second.address == first.address + 512
    assert allocator.usage.reserved == 2 * MIB
    assert allocator.usage.allocated == 1024
    assert allocator.usage.requested == 200


def test_a_large_block_is_split_only_if_more_than_1_mib_stays() -> None:
    allocator = CachingAllocator()
    block = allocator.malloc(19 * MIB)
    assert (block.size, allocator.usage.reserved) == (20 * MIB, 20 * MIB)
    other = allocator.malloc(9 * MIB)
    assert (other.size, allocator.usage.reserved) == (9 * MIB, 40 * MIB)


def test_the_smallest_block_that_is_large_enough_is_taken_and_the_lowest_of_equals() -> None:
    allocator = CachingAllocator()
    blocks = [allocator.malloc(n * MIB) for n in (40, 30, 30, 50)]
    for block in blocks:
        allocator.free(block)
    assert allocator.malloc(30 * MIB).address == blocks[1].address
    assert allocator.malloc(30 * MIB).address == blocks[2].address
    assert allocator.malloc(30 * MIB).address == blocks[0].address


def test_what_is_freed_is_one_with_its_neighbours() -> None:
    allocator = CachingAllocator()
    parts = [allocator.malloc(5 * MIB) for _ in range(4)]
    for block in (parts[0], parts[2], parts[1], parts[3]):
        allocator.free(block)
    assert allocator.malloc(20 * MIB).address == parts[0].address
    assert allocator.usage.reserved == 20 * MIB


def test_streams_share_no_blocks() -> None:
    allocator = CachingAllocator()
    allocator.free(allocator.malloc(30 * MIB, stream=0))
    allocator.malloc(30 * MIB, stream=7)
    assert allocator.usage.reserved == 60 * MIB


def test_a_block_that_another_stream_works_on_is_not_given_out() -> None:
    allocator = CachingAllocator()
    block = allocator.malloc(30 * MIB)
    allocator.free(block, waits=True)
    assert (allocator.usage.allocated, allocator.usage.active) == (0, 30 * MIB)
    other = allocator.malloc(30 * MIB)
    assert other.address != block.address
    allocator.complete(block)
    assert allocator.malloc(30 * MIB).address == block.address


def test_cached_segments_are_given_back_before_it_runs_out() -> None:
    allocator = CachingAllocator(capacity=100 * MIB)
    allocator.free(allocator.malloc(60 * MIB))
    allocator.malloc(80 * MIB)
    actions = [(d.action, d.size // MIB) for d in allocator.decisions]
    assert actions == [("segment_alloc", 60), ("segment_free", 60), ("segment_alloc", 80)]
    with pytest.raises(OutOfMemory):
        allocator.malloc(30 * MIB)
    assert allocator.usage.peak_reserved == 80 * MIB


def test_a_segment_of_which_a_part_is_in_use_is_not_given_back() -> None:
    allocator = CachingAllocator(capacity=100 * MIB)
    whole = allocator.malloc(60 * MIB)
    allocator.free(whole)
    kept = allocator.malloc(2 * MIB)
    with pytest.raises(OutOfMemory):
        allocator.malloc(70 * MIB)
    assert allocator.usage.reserved == 60 * MIB
    allocator.free(kept)
    allocator.malloc(70 * MIB)


def test_max_split_size_keeps_large_blocks_whole() -> None:
    allocator = CachingAllocator(parse_settings("max_split_size_mb:50"))
    allocator.free(allocator.malloc(100 * MIB))
    allocator.malloc(10 * MIB)
    assert allocator.usage.reserved == 110 * MIB
    near = allocator.malloc(81 * MIB)  # less than 20 MiB are lost
    assert (near.size, allocator.usage.reserved) == (100 * MIB, 110 * MIB)
    allocator.free(near)
    allocator.malloc(79 * MIB)
    assert allocator.usage.reserved == 190 * MIB


def test_max_split_size_gives_back_as_little_as_possible() -> None:
    allocator = CachingAllocator(parse_settings("max_split_size_mb:50"), capacity=400 * MIB)
    for block in [allocator.malloc(n * MIB) for n in (60, 120, 200)]:
        allocator.free(block)
    allocator.malloc(90 * MIB)
    freed = [d.size // MIB for d in allocator.decisions if d.action == "segment_free"]
    assert freed == [120]


def test_garbage_is_collected_by_age_above_the_threshold() -> None:
    settings = parse_settings("garbage_collection_threshold:0.5")
    allocator = CachingAllocator(settings, allowed=200 * MIB)
    old, young = allocator.malloc(60 * MIB), allocator.malloc(70 * MIB)
    allocator.free(old)
    for _ in range(10):
        allocator.free(young)
        young = allocator.malloc(70 * MIB)
    allocator.malloc(80 * MIB)
    freed = [d.size // MIB for d in allocator.decisions if d.action == "segment_free"]
    assert freed == [60]


def test_expandable_segments_grow_by_pages() -> None:
    allocator = CachingAllocator(AllocatorSettings(expandable_segments=True))
    first = allocator.malloc(30 * MIB)
    assert allocator.usage.reserved == 40 * MIB
    second = allocator.malloc(30 * MIB)
    assert second.address == first.address + 30 * MIB
    assert allocator.usage.reserved == 60 * MIB
    allocator.malloc(100)
    assert allocator.usage.reserved == 62 * MIB


def test_expandable_segments_use_what_lies_free_in_pieces() -> None:
    allocator = CachingAllocator(AllocatorSettings(expandable_segments=True), capacity=120 * MIB)
    blocks = [allocator.malloc(20 * MIB) for _ in range(6)]
    for block in blocks[::2]:
        allocator.free(block)
    allocator.malloc(60 * MIB)  # pages of three holes are unmapped, and mapped at the end
    assert allocator.usage.reserved == 120 * MIB
    with pytest.raises(OutOfMemory):
        allocator.malloc(20 * MIB)


@given(
    st.lists(st.tuples(SIZES, st.integers(0, 2), st.booleans()), max_size=60),
    st.booleans(),
)
def test_blocks_never_overlap_and_add_up(
    program: list[tuple[int, int, bool]], expandable: bool
) -> None:
    settings = AllocatorSettings(expandable_segments=expandable)
    allocator = CachingAllocator(settings, capacity=200 * MIB)
    for size, stream, drop in program:
        live = list(allocator.live)
        if drop and live:
            allocator.free(live[size % len(live)])
            continue
        try:
            assert allocator.malloc(size, stream).size >= size
        except OutOfMemory:
            break
    rows = [list(head.row()) for head in allocator.heads.values()]
    blocks = [b for row in rows for b in row if b.mapped]
    assert sum(b.size for b in blocks) == allocator.usage.reserved <= 200 * MIB
    assert sum(b.size for b in blocks if b.allocated) == allocator.usage.allocated
    ordered = sorted(blocks, key=lambda b: b.address)
    for before, after in itertools.pairwise(ordered):
        assert before.address + before.size <= after.address
    for row in rows:  # no two free blocks side by side
        free = [not b.busy and b.mapped for b in row]
        assert not any(a and b for a, b in itertools.pairwise(free))
    for block in list(allocator.live):
        allocator.free(block)
    allocator.empty_cache()
    assert (allocator.usage.reserved, allocator.usage.allocated) == (0, 0)
    assert not allocator.heads
