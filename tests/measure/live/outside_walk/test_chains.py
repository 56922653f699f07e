"""Linked objects are read in no more levels than a list of them would need."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from memfit.measure.live.outside_walk.chains import Chains
from memfit.measure.live.outside_walk.memory_copy import MemoryCopy
from tests.measure.live.outside_walk.children import PYTHONS, Walked, running

LINKS = 30_000
CHAINS = f"""
    import time

    class Node:
        def __init__(self, value, after):
            self.value, self.after = value, after

    class Slotted:
        __slots__ = ("value", "after")

        def __init__(self, value, after):
            self.value, self.after = value, after

    nodes = slotted = pairs = lists = named = None
    for i in range({LINKS}):
        nodes, slotted = Node(float(i), nodes), Slotted(float(i), slotted)
        pairs, lists = (float(i), pairs), [float(i), lists]
        named = {{"value": float(i), "after": named}}
    ring = Node(0.0, None)
    ring.after = Node(1.0, ring)
    print("ready", flush=True)
    time.sleep(300)
    """


@pytest.mark.parametrize("python", PYTHONS)
def test_chains_of_every_kind_are_counted_to_their_end(python: str, tmp_path: Path) -> None:
    with running(CHAINS, tmp_path, python) as process:
        found = Walked(process.pid)
    count = {
        name: sum(row["objects"] for holder, row in found.python.items() if holder.startswith(name))
        for name in ("nodes", "slotted", "pairs", "lists", "named")
    }
    for name, objects in count.items():
        # Each with its value, but for what several share.
        assert objects >= 1.99 * LINKS, (name, count)
        assert objects <= 3 * LINKS + 100, (name, count)


class Memory:
    """Words by address; what is not there is zero, as in a copy. A mark is an address."""

    def __init__(self, words: dict[int, int]) -> None:
        self.words, self.read = words, 0

    def word_at(self, address: int) -> int:
        self.read += 1
        return self.words.get(address, 0)

    def mark_at(self, address: int) -> int:
        return address


KIND = 7


def linked(*places: int) -> dict[int, int]:
    """Objects whose third word leads to the next."""
    words = {place + 8: KIND for place in places}
    return words | {a + 24: b for a, b in pairwise(places)}


def chains(words: dict[int, int], *seen: int) -> tuple[Chains, Memory]:
    memory, marks = Memory(words), np.zeros(10_000, dtype=np.uint8)
    marks[list(seen)] = 1
    return Chains(cast(MemoryCopy, memory), marks), memory


def ahead(found: Chains, address: int) -> list[int]:
    return found.ahead(KIND, "object", address, lambda: None)


def test_a_ring_ends_where_it_began() -> None:
    places = (1000, 2000, 3000)
    assert ahead(chains(linked(*places) | {3024: 2000})[0], 1000) == [2000, 3000]


def test_what_was_seen_ends_a_chain() -> None:
    assert ahead(chains(linked(1000, 2000, 3000, 4000), 3000)[0], 1000) == [2000]


def test_where_nothing_follows_it_is_not_tried_for_ever() -> None:
    found, memory = chains({1000 + 8: KIND, 1000 + 24: 5000})
    for _ in range(10):
        assert ahead(found, 1000) == []
    before = memory.read
    assert ahead(found, 1000) == []
    assert memory.read == before


def test_a_few_thin_levels_are_no_chain() -> None:
    found, _ = chains({})
    assert not any(found.may_be(1) for _ in range(30))
    assert found.may_be(1)
    assert not found.may_be(1000)  # the values of those that were followed
    assert found.may_be(1)  # and it goes on
    assert not chains({})[0].may_be(1000)
