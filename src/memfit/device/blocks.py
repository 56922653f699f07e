"""Blocks of a card's memory, and the pools in which those that are free wait for a request."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field

Pool = tuple[str, bool]  # a private pool's name ("" for the common one), and whether it is small


@dataclass(slots=True, eq=False)
class Block:
    """A stretch of a segment, between two others; what is not `mapped` has no memory behind it.

    `waits` where it was freed and another stream still works on it.
    """

    address: int
    size: int
    stream: int
    pool: Pool
    segment: int = 0  # the number of the expandable segment that it is in; 0 in others
    mapped: bool = True
    allocated: bool = False
    waits: bool = False
    requested: int = 0
    age_from: int = 0
    before: Block | None = field(default=None, repr=False)
    after: Block | None = field(default=None, repr=False)

    @property
    def small(self) -> bool:
        return self.pool[1]

    @property
    def split(self) -> bool:
        """Whether it is a part of a segment only."""
        return self.before is not None or self.after is not None

    @property
    def busy(self) -> bool:
        return self.allocated or self.waits

    def put_after(self, block: Block) -> None:
        """Take the place behind another."""
        self.before, self.after = block, block.after
        if block.after is not None:
            block.after.before = self
        block.after = self

    def take(self, other: Block) -> None:
        """Become one with a neighbour."""
        if other is self.before:
            self.address = other.address
            self.before = other.before
            if self.before is not None:
                self.before.after = self
        else:
            self.after = other.after
            if self.after is not None:
                self.after.before = self
        self.size += other.size

    def row(self) -> Iterator[Block]:
        """It and all that are behind it."""
        block: Block | None = self
        while block is not None:
            yield block
            block = block.after


class FreeBlocks:
    """The free blocks of a pool, by stream in order of size and address."""

    def __init__(self) -> None:
        self._keys: dict[int, list[tuple[int, int]]] = {}
        self._at: dict[int, Block] = {}
        self.searches = 0  # how often a block was looked for here: the age of those that stay

    def __iter__(self) -> Iterator[Block]:
        for stream in sorted(self._keys):
            yield from self.of(stream)

    def add(self, block: Block) -> None:
        block.age_from = self.searches
        insort(self._keys.setdefault(block.stream, []), (block.size, block.address))
        self._at[block.address] = block

    def remove(self, block: Block) -> None:
        keys = self._keys[block.stream]
        del keys[bisect_left(keys, (block.size, block.address))]
        del self._at[block.address]

    def of(self, stream: int) -> list[Block]:
        """Those of a stream, the smallest first."""
        return [self._at[address] for _, address in self._keys.get(stream, ())]

    def at_least(self, stream: int, size: int) -> Iterator[Block]:
        """Those of a stream that have so many bytes, the smallest first."""
        keys = self._keys.get(stream, [])
        for place in range(bisect_left(keys, (size, 0)), len(keys)):
            yield self._at[keys[place][1]]
