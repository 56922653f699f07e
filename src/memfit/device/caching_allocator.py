"""CUDA's caching allocator, as torch has it: which block a request gets, and when memory is asked.

A request is rounded up, and gets the smallest free block of its pool and stream that is large
enough, the one with the lowest address among equals; a block that is much larger is split. Only
where there is none is the driver asked for a segment. What is freed stays, and becomes one with its
free neighbours. Where the driver refuses, cached segments are given back, and it is asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from memfit.device.allocator_settings import LARGEST_SMALL, AllocatorSettings
from memfit.device.blocks import Block, FreeBlocks, Pool
from memfit.device.expandable import ExpandableSegments
from memfit.units import MIB


class OutOfMemory(Exception):
    """The request does not fit, even after all that is cached was given back."""

    def __init__(self, size: int) -> None:
        super().__init__(f"no room for {size} bytes")
        self.size = size


@dataclass(frozen=True, slots=True)
class Decision:
    """What the allocator asked of the driver, in the words of a history: `segment_alloc` ...

    Also `free_completed`, where it waited for the streams of what was freed.
    """

    action: str
    address: int
    size: int
    stream: int = field(default=0, compare=False)


@dataclass(slots=True)
class Usage:
    """Bytes now and at most: in blocks of tensors, in those and waiting ones, of the driver."""

    allocated: int = 0
    active: int = 0
    requested: int = 0
    reserved: int = 0
    peak_allocated: int = 0
    peak_active: int = 0
    peak_requested: int = 0
    peak_reserved: int = 0

    def note(self) -> None:
        """Keep what is more than ever before."""
        self.peak_allocated = max(self.peak_allocated, self.allocated)
        self.peak_active = max(self.peak_active, self.active)
        self.peak_requested = max(self.peak_requested, self.requested)
        self.peak_reserved = max(self.peak_reserved, self.reserved)


@dataclass
class CachingAllocator:
    """The allocator of one card.

    `capacity` is what the driver can give, `allowed` what the process may take by
    `set_per_process_memory_fraction`. `refuses` makes the driver fail otherwise, and `place` says
    where a new segment of some size is put.
    """

    settings: AllocatorSettings = field(default_factory=AllocatorSettings)
    capacity: int | None = None
    allowed: int | None = None
    place: Callable[[int], int | None] = lambda size: None
    refuses: Callable[[int], bool] = lambda size: False
    usage: Usage = field(default_factory=Usage)
    decisions: list[Decision] = field(default_factory=list)
    free_blocks: dict[Pool, FreeBlocks] = field(default_factory=dict)
    heads: dict[int, Block] = field(default_factory=dict)  # the first block of each segment
    _busy: dict[int, Block] = field(default_factory=dict)
    _next_address: int = 2**40

    def __post_init__(self) -> None:
        self._expandable = ExpandableSegments(self)

    def malloc(self, size: int, stream: int = 0, pool: str = "") -> Block:
        """A block for so many bytes; raises `OutOfMemory`."""
        rounded = self.settings.rounded(size)
        key = (pool, rounded <= LARGEST_SMALL)
        block = self.cached(rounded, stream, key)
        if block is None:
            block = self._new(rounded, stream, key)
        else:
            self.pool(key).remove(block)
        rest = block.size - rounded
        if self.settings.splits(rounded, rest, small=key[1]):
            self._split(block, rounded)
        block.allocated, block.requested = True, size
        self._busy[block.address] = block
        self.usage.allocated += block.size
        self.usage.active += block.size
        self.usage.requested += size
        self.usage.note()
        return block

    def free(self, block: Block, *, waits: bool = False) -> None:
        """Give a block back; it `waits` until `complete` where another stream works on it."""
        block.allocated, block.waits = False, waits
        self.usage.allocated -= block.size
        if not waits:
            self._cache(block)

    def complete(self, block: Block) -> None:
        """The other streams are done with a block that was freed."""
        block.waits = False
        self._cache(block)

    def empty_cache(self) -> None:
        """Give every segment back that nothing uses."""
        for block in [b for b in self._busy.values() if b.waits]:
            self.decisions.append(
                Decision("free_completed", block.address, block.requested, block.stream)
            )
            self.complete(block)
        # Private pools keep what they have until their graphs are gone.
        for small in (False, True):
            self._release_all(("", small))

    def busy(self, address: int) -> Block | None:
        """The block in use that begins there."""
        return self._busy.get(address)

    @property
    def live(self) -> Iterator[Block]:
        """All blocks in use."""
        yield from self._busy.values()

    def pool(self, key: Pool) -> FreeBlocks:
        return self.free_blocks.setdefault(key, FreeBlocks())

    def adopt(self, blocks: list[Block]) -> None:
        """Take a segment over as it was found, with its blocks in order."""
        for before, after in pairwise(blocks):
            before.after, after.before = after, before
        self.heads[blocks[0].address] = blocks[0]
        for block in blocks:
            self._next_address = max(self._next_address, block.address + block.size)
            if block.segment:
                self._expandable.adopt(block)
            if not block.mapped:
                continue
            self.usage.reserved += block.size
            if block.busy:
                self._busy[block.address] = block
                self.usage.active += block.size
                self.usage.requested += block.requested
                self.usage.allocated += block.size * block.allocated
            else:
                self.pool(block.pool).add(block)
        self.usage.note()

    # What the driver is asked.

    def take(self, action: str, block: Block) -> None:
        """Memory that the driver gave."""
        self.usage.reserved += block.size
        self.usage.note()
        self.decisions.append(Decision(action, block.address, block.size, block.stream))

    def give_back(self, action: str, block: Block) -> None:
        """Memory that the driver has again."""
        self.usage.reserved -= block.size
        self.decisions.append(Decision(action, block.address, block.size, block.stream))

    def has_room(self, size: int) -> bool:
        """Whether the driver would give so much."""
        if self.capacity is not None and self.usage.reserved + size > self.capacity:
            return False
        return not self.refuses(size)

    def address_for(self, size: int) -> int:
        """Where a new segment is put."""
        address = self.place(size)
        if address is None:
            address = self._next_address
            self._next_address += -(-size // (2 * MIB)) * 2 * MIB
        return address

    def merge(self, block: Block) -> None:
        """Make a block one with its neighbours that are as free and as mapped as it is."""
        for other in (block.before, block.after):
            if other is None or other.busy or other.mapped is not block.mapped:
                continue
            if other.mapped:
                self.pool(other.pool).remove(other)
            else:
                self._expandable.forget(other)
            if other is block.before and self.heads.get(other.address) is other:
                self.heads[other.address] = block
            block.take(other)

    # Which block a request gets.

    def cached(self, size: int, stream: int, key: Pool) -> Block | None:
        """The free block that a (rounded) request gets; none where the driver has to be asked."""
        pool, most = self.pool(key), self.settings.max_split_size
        if self.allowed is not None and self.settings.garbage_collection_threshold:
            pool.searches += 1
        candidates = pool.at_least(stream, size)
        block = next(candidates, None)
        if block is None:
            return None
        if block.segment and self.settings.expandable_segments:
            block = _least_growing(block, candidates)
        elif block.segment:
            block = next((b for b in candidates if not b.segment), None)
            if block is None:
                return None
        # A large block that must not be split is kept for large requests, and for near ones.
        if size < most <= block.size:
            return None
        if size >= most and block.size >= size + self.settings.max_non_split_rounding:
            return None
        return block

    def _new(self, size: int, stream: int, key: Pool) -> Block:
        """A block from the driver, after giving back what is cached where it has no more."""
        if self.allowed is not None and self.settings.garbage_collection_threshold:
            self._collect_garbage(self.allowed)
        block = self._asked(size, stream, key)
        if block is None and self._release_some(size, stream, key):
            block = self._asked(size, stream, key)
        if block is None:
            self.empty_cache()
            block = self._asked(size, stream, key)
        if block is None:
            raise OutOfMemory(size)
        return block

    def _asked(self, size: int, stream: int, key: Pool) -> Block | None:
        asked = self.settings.segment_size(size)
        if self.allowed is not None and self.usage.reserved + asked > self.allowed:
            return None
        if self.settings.expandable_segments:
            return self._expandable.allocate(size, stream, key)
        if not self.has_room(asked):
            return None
        block = Block(self.address_for(asked), asked, stream, key)
        self.heads[block.address] = block
        self.take("segment_alloc", block)
        return block

    def _split(self, block: Block, size: int) -> None:
        rest = Block(block.address + size, block.size - size, block.stream, block.pool)
        rest.segment = block.segment
        rest.put_after(block)
        block.size = size
        self.pool(block.pool).add(rest)

    def _cache(self, block: Block) -> None:
        """Put a block that nothing uses among the free ones."""
        del self._busy[block.address]
        self.usage.active -= block.size
        self.usage.requested -= block.requested
        block.requested = 0
        self.merge(block)
        self.pool(block.pool).add(block)

    # Giving back.

    def _release(self, block: Block) -> None:
        self.pool(block.pool).remove(block)
        del self.heads[block.address]
        self.give_back("segment_free", block)

    def _release_all(self, key: Pool) -> None:
        pool = self.pool(key)
        grown = [block for block in pool if block.segment]
        for block in [b for b in pool if not b.segment and not b.split]:
            self._release(block)
        for block in grown:
            self._expandable.unmap(block)

    def _release_some(self, size: int, stream: int, key: Pool) -> bool:
        """Give back as few as possible of the blocks that may not be split."""
        if self.settings.splits_all:
            return False
        pool, least = self.pool(key), self.settings.max_split_size
        wanted = max(size, least)
        fitting = next(pool.at_least(stream, wanted), None)
        if fitting is not None and not fitting.segment:
            self._release(fitting)
            return True
        released = 0
        for block in reversed(pool.of(stream)):
            if released >= wanted or block.size < least:
                break
            if not block.segment:
                released += block.size
                self._release(block)
        return released >= wanted

    def _collect_garbage(self, allowed: int) -> None:
        """Give back the segments that were of no use for longest, above the threshold."""
        threshold = int(self.settings.garbage_collection_threshold * allowed)
        target = self.usage.reserved - threshold
        blocks = self.pool(("", False))
        if target <= 0:
            return
        ages = {b: blocks.searches - b.age_from for b in blocks if not b.split and not b.segment}
        reclaimed = 0
        while ages and reclaimed < target:
            mean = sum(ages.values()) / len(ages)
            for block in [b for b, age in ages.items() if age >= mean]:
                reclaimed += block.size
                del ages[block]
                self._release(block)


def _least_growing(block: Block, others: Iterator[Block]) -> Block:
    """Among blocks of expandable segments, size is what a block can grow to."""
    for other in others:
        if not block.segment or _reach(other) >= _reach(block):
            break
        block = other
    return block


def _reach(block: Block) -> int:
    after = block.after
    return block.size + (after.size if after is not None and not after.mapped else 0)
