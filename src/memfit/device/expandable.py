"""Expandable segments: address space of the whole card that memory is mapped to page by page.

There is one for each pool and stream, as long as its address space lasts. What is free at its end
grows by the pages that a request lacks; free pages are unmapped where the driver has no more.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from typing import Protocol

from memfit.device.allocator_settings import AllocatorSettings
from memfit.device.blocks import Block, FreeBlocks, Pool
from memfit.units import TIB

_LINE = tuple[Pool, int]  # a pool and a stream


class Driver(Protocol):
    """What expandable segments need of the allocator that they belong to."""

    settings: AllocatorSettings
    capacity: int | None
    heads: dict[int, Block]

    def pool(self, key: Pool) -> FreeBlocks: ...
    def has_room(self, size: int) -> bool: ...
    def address_for(self, size: int) -> int: ...
    def take(self, action: str, block: Block) -> None: ...
    def give_back(self, action: str, block: Block) -> None: ...
    def merge(self, block: Block) -> None: ...


@dataclass
class ExpandableSegments:
    """Those of one allocator."""

    driver: Driver
    _bases: dict[int, int] = field(default_factory=dict)
    _lines: dict[_LINE, list[int]] = field(default_factory=dict)  # addresses of what is unmapped
    _unmapped: dict[int, Block] = field(default_factory=dict)

    def adopt(self, block: Block) -> None:
        """Take a block of a segment over as it was found; the first one found is its beginning."""
        self._bases.setdefault(block.segment, block.address)
        if not block.mapped:
            self._remember(block)

    def forget(self, block: Block) -> None:
        """An unmapped block that is one with another now."""
        line = self._lines[block.pool, block.stream]
        del line[bisect_left(line, block.address)]
        del self._unmapped[block.address]

    def allocate(self, size: int, stream: int, key: Pool) -> Block | None:
        """A free block of at least this size, made by mapping; none where memory is short."""
        block = self._candidate(size, stream, key)
        if not block.mapped and not self._map(block, min(block.size, size)):
            return None
        while block.size < size:
            more = block.after
            if more is None or not self._map(more, min(size - block.size, more.size)):
                return None
            block = more  # one with the block before it
        self.driver.pool(key).remove(block)
        return block

    def unmap(self, block: Block) -> None:
        """Give the whole pages of a free block back."""
        base, page = self._bases[block.segment], self._page(block)
        first = base + -(-(block.address - base) // page) * page
        end = base + (block.address + block.size - base) // page * page
        if first >= end:
            return
        pool = self.driver.pool(block.pool)
        pool.remove(block)
        if first > block.address:
            kept = self._part(block, block.address, first - block.address)
            kept.before = block.before
            if block.before is not None:
                block.before.after = kept
            elif self.driver.heads.get(block.address) is block:
                self.driver.heads[block.address] = kept
            kept.after, block.before = block, kept
            pool.add(kept)
        if (rest := block.address + block.size - end) > 0:
            kept = self._part(block, end, rest)
            kept.put_after(block)
            pool.add(kept)
        block.address, block.size, block.mapped = first, end - first, False
        self.driver.give_back("segment_unmap", block)
        self.driver.merge(block)
        if block.split:
            self._remember(block)
        else:
            del self.driver.heads[block.address], self._bases[block.segment]

    def _candidate(self, size: int, stream: int, key: Pool) -> Block:
        """The lowest address with enough room that is free or unmapped."""
        for address in self._lines.get((key, stream), ()):
            block = self._unmapped[address]
            if block.before is not None and not block.before.busy:
                block = block.before
            if _room(block, size):
                return block
        capacity = self.driver.capacity or TIB
        page = self.driver.settings.page_size(small=key[1])
        space = -(-(capacity + capacity // 8) // page) * page
        block = Block(self.driver.address_for(space), space, stream, key, mapped=False)
        block.segment = 1 + max(self._bases, default=0)
        self._bases[block.segment] = block.address
        self.driver.heads[block.address] = block
        self._remember(block)
        return block

    def _map(self, block: Block, size: int) -> bool:
        page = self._page(block)
        mapped = min(-(-size // page) * page, block.size)
        if not self.driver.has_room(mapped):
            return False
        self.forget(block)
        block.mapped = True
        if mapped < block.size:
            rest = self._part(block, block.address + mapped, block.size - mapped)
            rest.mapped = False
            rest.put_after(block)
            block.size = mapped
            self._remember(rest)
        self.driver.take("segment_map", block)
        self.driver.merge(block)
        self.driver.pool(block.pool).add(block)
        return True

    def _remember(self, block: Block) -> None:
        insort(self._lines.setdefault((block.pool, block.stream), []), block.address)
        self._unmapped[block.address] = block

    def _page(self, block: Block) -> int:
        return self.driver.settings.page_size(small=block.small)

    @staticmethod
    def _part(of: Block, address: int, size: int) -> Block:
        return Block(address, size, of.stream, of.pool, segment=of.segment)


def _room(block: Block, size: int) -> bool:
    """Whether so much lies from here on without a block in use."""
    found = 0
    for part in block.row():
        if found >= size or part.busy:
            break
        found += part.size
    return found >= size
