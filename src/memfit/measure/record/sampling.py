"""Samples the memory of a process tree, often and at little cost.

Adding up PSS takes longer the more memory there is, so it is done seldom; in between, the change of
the resident size, which the kernel keeps ready, is added to it.
"""

from __future__ import annotations

import time

from memfit.measure.kernel import proc
from memfit.measure.kernel.mappings import Mapping, mappings
from memfit.model import Reading

_SHARE = 200  # an exact reading takes at most this part of the time between two
_LEAST_SECONDS = 0.5
_MEMBERS_SECONDS = 0.02
_BLOCK = 32 * 2**20  # a mapping that may be a buffer being filled


class Sampler:
    """Reads one tree again and again."""

    def __init__(self, tree: proc.Tree) -> None:
        self.tree = tree
        self.members: list[int] = [tree.main]
        self._exact = 0
        self._resident = 0
        self._next_exact = 0.0
        self._high_water = 0
        self._next_members = 0.0
        self._filling = Filling(tree.main)

    def sample(self, seconds: float, step: int | None = None) -> Reading:
        """What the tree holds now, with spikes of its main process since the last time."""
        if time.monotonic() >= self._next_exact:
            self._read_exactly()
        amount = self._now()
        threads = sum(map(proc.threads, self.members))
        high = proc.high_water(self.tree.main)
        if high > self._high_water:
            own = proc.resident(self.tree.main)
            amount += max(0, high - max(own, self._high_water)) if self._high_water else 0
            self._high_water = high
        self._filling.look()
        return Reading(
            seconds=seconds,
            bytes=amount,
            processes=len(self.members),
            threads=threads,
            step=step,
            filling=self._filling.filled,
            room=self._filling.room,
        )

    def quick_bytes(self) -> int:
        """The same without spikes and threads: for a guard that looks often."""
        now = time.monotonic()
        if now >= self._next_members:
            self.members = self.tree.members()
            self._next_members = now + _MEMBERS_SECONDS
        return self._now()

    def exact_bytes(self) -> int:
        """The sum of PSS, read now."""
        self._read_exactly()
        return self._now()

    def _now(self) -> int:
        return max(0, self._exact + sum(map(proc.resident, self.members)) - self._resident)

    def _read_exactly(self) -> None:
        started = time.monotonic()
        self.members = self.tree.members()
        exact = self.tree.memory().pss
        if exact:
            self._exact = exact
            self._resident = sum(map(proc.resident, self.members))
        took = time.monotonic() - started
        self._next_exact = time.monotonic() + max(_LEAST_SECONDS, _SHARE * took)


class Filling:
    """Large blocks of a process that are reserved and being filled."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._before: dict[int, int] = {}
        self._growing: set[int] = set()
        self._next = 0.0
        self.filled = 0
        self.room = 0

    def look(self) -> None:
        """How much they hold, and how much they can still take; seldom, since it takes time."""
        now = time.monotonic()
        if now < self._next:
            return
        try:
            maps = [m for m in mappings(self.pid) if _may_fill(m)]
        except OSError:
            return
        held = {m.start: m.rss for m in maps}
        self._growing |= {a for a, rss in held.items() if rss > self._before.get(a, rss)}
        self._growing &= set(held)
        own = [m for m in maps if m.start in self._growing]
        self.filled = sum(m.rss for m in own)
        self.room = sum(m.reserved - m.rss for m in own)
        self._before = held
        self._next = time.monotonic() + max(1.0, _SHARE * (time.monotonic() - now))


def _may_fill(mapping: Mapping) -> bool:
    return mapping.nameless and mapping.writable and mapping.reserved >= _BLOCK
