"""A set of addresses: a byte for every 16 of memory, in small pieces.

A set of numbers would take ten times as much, in the process whose memory is being explained. The
pieces are mapped, not allocated, so that nothing of them stays with the target's allocator.
"""

from __future__ import annotations

import mmap

PIECE = 18  # bits of an address within one piece: 256 KiB of memory
MASK = (1 << (PIECE - 4)) - 1
_SLAB = 64  # pieces that are mapped together


class SeenAddresses:
    """A set of addresses that are multiples of 16, or alone within 16 bytes."""

    __slots__ = ("pieces", "slab", "used")

    def __init__(self) -> None:
        self.pieces: dict[int, memoryview] = {}
        self.slab: memoryview | None = None
        self.used = 0

    def piece(self, number: int) -> memoryview:
        """A new piece, with nothing seen in it."""
        if self.slab is None or self.used == _SLAB:
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
            self.slab = memoryview(mmap.mmap(-1, _SLAB * (MASK + 1), flags))
            self.used = 0
        at = self.used * (MASK + 1)
        self.used += 1
        found = self.pieces[number] = self.slab[at : at + MASK + 1]
        return found

    def add(self, address: int) -> bool:
        """Whether an address is new; it is seen from now on."""
        piece = self.pieces.get(address >> PIECE)
        if piece is None:
            piece = self.piece(address >> PIECE)
        at = (address >> 4) & MASK
        if piece[at]:
            return False
        piece[at] = 1
        return True

    def __contains__(self, address: int) -> bool:
        piece = self.pieces.get(address >> PIECE)
        return piece is not None and bool(piece[(address >> 4) & MASK])
