"""Which addresses were seen: a byte for every 16 of memory, in small pieces.

A set of numbers would take ten times as much, in the process whose memory is being explained.
"""

from __future__ import annotations

_PIECE = 18  # bits of an address within one piece: 256 KiB of memory
_MASK = (1 << (_PIECE - 4)) - 1


class Seen:
    """A set of addresses that are multiples of 16, or alone within 16 bytes."""

    __slots__ = ("pieces",)

    def __init__(self) -> None:
        self.pieces: dict[int, bytearray] = {}

    def add(self, address: int) -> bool:
        """Whether an address is new; it is seen from now on."""
        piece = self.pieces.get(address >> _PIECE)
        if piece is None:
            piece = self.pieces[address >> _PIECE] = bytearray(_MASK + 1)
        at = (address >> 4) & _MASK
        if piece[at]:
            return False
        piece[at] = 1
        return True

    def __contains__(self, address: int) -> bool:
        piece = self.pieces.get(address >> _PIECE)
        return piece is not None and bool(piece[(address >> 4) & _MASK])

    def nbytes(self) -> int:
        return len(self.pieces) * (_MASK + 1)
