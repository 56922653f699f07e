"""Keeps what workers create apart from what they share.

Python puts a new object into a hole between older ones. In a fork these lie in shared pages, of
which each that is written to becomes the worker's own: for an object of 48 bytes, 4096. With the
holes filled before the fork, new objects lie together in pages of their own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

# Bytes that an empty one has; one less than what is left is what it can hold.
_BYTES_HEAD = sys.getsizeof(b"")
_MOST_TEXT = 1 << 20


def filled_holes() -> list[Any]:
    """Objects for all holes of Python's allocator; they fill them for as long as they are held.

    Nothing where Python uses another allocator.
    """
    held: list[Any] = []
    for size, count in _holes():
        make = _maker(size)
        if make is not None:
            held += [make() for _ in range(count)]
    return held


def _maker(size: int) -> Callable[[], Any] | None:
    """How to make an object that takes a block of so many bytes."""
    if size == sys.getsizeof(object()):
        return object
    if size >= _BYTES_HEAD + 2:  # shorter ones are not made anew
        return lambda: bytes(size - _BYTES_HEAD)
    if size == sys.getsizeof(1j):
        return lambda: complex(size, size)
    return None


def _holes() -> Iterator[tuple[int, int]]:
    """The sizes of blocks, and how many of each are free in pages that are used otherwise."""
    told = getattr(sys, "_debugmallocstats", None)
    if told is None:
        return
    with open(os.memfd_create("memfit-blocks", os.MFD_CLOEXEC), "rb") as file:
        # It writes to standard error, and nowhere else.
        sys.stderr.flush()
        error = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            told()
        finally:
            os.dup2(error, 2)
            os.close(error)
        text = os.pread(file.fileno(), _MOST_TEXT, 0).decode(errors="replace")
    for line in text.splitlines():
        words = line.split()
        if len(words) == 5 and all(word.isdigit() for word in words):
            _, size, _, _, free = map(int, words)
            yield size, free
