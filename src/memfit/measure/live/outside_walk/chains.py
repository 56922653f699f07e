"""Follows objects that lead one to the next, so that a walk by levels meets many of them at once.

A linked list has a level for each of its objects. Where levels have been thin for long, the way
from an object to the next of its type is found, and gone on and on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from memfit.measure.live.outside_walk import layouts as at
from memfit.measure.live.outside_walk.memory_copy import MemoryCopy

_FEW, _PATIENCE = 8, 30  # objects of a thin level, and how many of these come before
_MOST = 50_000  # objects of a chain that are followed at once
_WORDS = 24  # of a thing that are looked at
_FAILED = 3  # times that no next was found for a type
_ASK_TIME = 2000
_FORMS = ("object", "list", "tuple", "dict")

Way = tuple[int, ...]  # what is added to an address before each word that is read
Marks = NDArray[np.uint8]


class Chains:
    """What is known of chains so far."""

    def __init__(self, copy: MemoryCopy, seen: Marks) -> None:
        self._copy, self._seen = copy, seen
        self._thin = 0
        self._ways: dict[int, list[Way]] = {}
        self._failed: dict[int, int] = {}

    def may_be(self, objects: int) -> bool:
        """Whether a level of so many objects may be one of a chain."""
        if objects > _FEW:
            self._thin = min(self._thin, 0 if self._thin < _PATIENCE else _PATIENCE)
            return False
        self._thin += 1
        return self._thin > _PATIENCE

    def ahead(self, kind: int, form: str, address: int, check: Callable[[], None]) -> list[int]:
        """The objects of this type that come after one, in turn; those that were seen end it."""
        if form not in _FORMS or self._failed.get(kind, 0) >= _FAILED:
            return []
        for way in self._ways.get(kind, ()):
            if found := self._follow(way, kind, address, check):
                return found
        for way in self._ways_from(kind, address):
            if found := self._follow(way, kind, address, check):
                self._ways.setdefault(kind, []).append(way)
                return found
        self._failed[kind] = self._failed.get(kind, 0) + 1
        return []

    def _follow(self, way: Way, kind: int, address: int, check: Callable[[], None]) -> list[int]:
        word = self._copy.word_at
        found: dict[int, None] = {}
        while len(found) < _MOST:
            for step in way:
                address = word(address + step)
            if address in found or word(address + at.TYPE) != kind:
                break
            place = self._copy.mark_at(address)
            if place < 0 or self._seen[place]:
                break
            found[address] = None
            if len(found) % _ASK_TIME == 0:
                check()
        return list(found)

    def _ways_from(self, kind: int, address: int) -> Iterator[Way]:
        """Ways of up to three words to another object of the same type, the shortest first.

        The first of them begins behind what every object has, or before the collector's header.
        """
        first = [*range(at.HEAD, at.HEAD + 8 * _WORDS, 8), -32, -24]
        ways: Sequence[tuple[Way, int]] = [((), address)]
        for depth in range(3):
            further: list[tuple[Way, int]] = []
            for way, place in ways:
                for step in first if depth == 0 else range(0, 8 * _WORDS, 8):
                    value = self._copy.word_at(place + step)
                    if not value or value == address:
                        continue
                    if self._copy.word_at(value + at.TYPE) == kind:
                        yield (*way, step)
                    further.append(((*way, step), value))
            ways = further
