"""Samples the memory of a process tree, often and at little cost.

Memory is the sum of PSS. Adding that up takes longer the more memory and processes there are, so it
is done seldom. In between there are two bounds, from the resident sizes that the kernel keeps
ready: what the tree holds for certain, and the most that it can hold.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from memfit.measure.kernel import proc
from memfit.measure.kernel.mappings import Mapping, listed, mappings
from memfit.measure.kernel.process_memory import ProcessMemory
from memfit.model import Reading

_SHARE = 200  # an exact reading takes at most this part of the time between two
_LEAST_SECONDS = 0.5
# More of them where the bounds are apart: this part of the time, and at first or after a quiet time
# so many seconds at once.
_DOUBT_SHARE, _DOUBT_SECONDS = 100, 0.3
_APART, _APART_BYTES = 0.02, 4 * 2**20  # of the upper bound: no doubt below
_MEMBERS_SECONDS, _MEMBERS_SHARE = 0.02, 10  # between two searches for processes
_BLOCK = 32 * 2**20  # a mapping that may be a buffer being filled


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What a tree holds at least and at most.

    `likely` is `least` with new shared memory of a process that has nobody in its tree to share it
    with; another tree may still have it too.
    """

    least: int
    likely: int
    most: int

    @classmethod
    def exactly(cls, amount: int) -> Bounds:
        """Where it has been read."""
        return cls(least=amount, likely=amount, most=amount)

    @property
    def apart(self) -> bool:
        return self.most - self.least > max(_APART_BYTES, _APART * self.most)


@dataclass(frozen=True, kw_only=True)
class _Known:
    """A process when its PSS was read: `before` and `after` are its resident sizes around that.

    `private` is what goes if it ends, whoever it shared the rest with; `mapped` is what it had of
    files and shared memory afterwards, `shared` what of shared memory alone.
    """

    pss: int
    private: int
    before: int
    after: int
    mapped: int
    shared: int


class Sampler:
    """Reads one tree again and again."""

    def __init__(self, tree: proc.Tree) -> None:
        self.tree = tree
        self.members: list[int] = [tree.main]
        self._exact = self._peak = 0
        self._highest = 0  # of the exact readings since the last sample
        self.held: dict[int, int] = {}  # PSS by process, at the last exact reading
        self._files = 0
        self._known: dict[int, _Known] = {}
        self._next_exact = self._next_members = 0.0
        self._allowed, self._allowed_at = _DOUBT_SECONDS, time.monotonic()
        self._unconfirmed = self._doubted = 0
        self._doubted_members: set[int] = set()
        self._high_water = 0
        self._filling = Filling(tree.main)

    def sample(self, seconds: float, step: int | None = None) -> Reading:
        """What the tree holds now, with spikes of its main process since the last time.

        A new peak is an exact reading, or one with memory that came on top for certain since.
        """
        bounds = self.bounds()
        if time.monotonic() >= self._next_exact:
            bounds = self._read_exactly()
        elif bounds.apart and self._may_read():
            started = time.thread_time()
            bounds = self._read_exactly()
            self._allowed -= time.thread_time() - started
        if bounds.apart and bounds.most > max(self._peak, self._doubted):
            self._doubted, self._doubted_members = bounds.most, set(self.members)
        amount = max(self._highest, min(bounds.most, max(self._peak, bounds.least)))
        self._highest = 0
        threads = sum(map(proc.threads, self.members))
        high = proc.high_water(self.tree.main)
        if high > self._high_water:
            own = proc.resident(self.tree.main)
            amount += max(0, high - max(own, self._high_water)) if self._high_water else 0
            self._high_water = high
        self._peak = max(self._peak, amount)
        self._filling.look()
        return Reading(
            seconds=seconds,
            bytes=amount,
            processes=len(self.members),
            threads=threads,
            step=step,
            filling=self._filling.filled,
            room=self._filling.room,
            files=self._files,
        )

    @property
    def unconfirmed(self) -> int:
        """The most that the tree may have held, above its peak, at a time that was not read."""
        most = max(self._unconfirmed, self._doubted)
        return most if most > self._peak else 0

    def bounds(self) -> Bounds:
        """What it holds, without spikes and threads: for a guard that looks often."""
        if time.monotonic() >= self._next_members:
            started = time.thread_time()
            self.members = self.tree.members()
            took = time.thread_time() - started
            self._next_members = time.monotonic() + max(_MEMBERS_SECONDS, _MEMBERS_SHARE * took)
        return self._now()

    def shares(self) -> dict[int, int]:
        """What each process holds now: its PSS when that was read, and what it has more since."""
        found = {}
        for pid in self.members:
            resident, known = proc.resident(pid), self._known.get(pid)
            if resident:
                found[pid] = max(0, resident - known.after + known.pss) if known else resident
        return found

    def exact_bytes(self) -> int:
        """The sum of PSS, read now."""
        return self._read_exactly().least

    def _now(self) -> Bounds:
        """The last exact reading, and what has changed since.

        Private pages that a process has more than at that time are new for certain. Pages of files
        and of shared memory may have been another's before, and so may all of a process that was
        started since: a fork has its parent's. Who lets go of shared pages leaves them to others.
        """
        least = most = self._exact
        shared = 0
        gone = dict(self._known)
        for pid in self.members:
            resident, mapped = proc.resident_and_mapped(pid)
            known = self._known.get(pid)
            if known is None:
                most += resident
            elif resident:
                del gone[pid]
                more = max(0, mapped - known.mapped)
                least += resident - known.after - more
                if more and len(self.members) == 1:
                    shared = min(more, max(0, proc.shared_memory(pid) - known.shared))
                most += max(resident - known.before, -known.private)
        least -= sum(known.pss for known in gone.values())
        most -= sum(known.private for known in gone.values())
        least = max(0, min(least, most))
        return Bounds(least=least, likely=max(least, min(least + shared, most)), most=max(0, most))

    def _read_exactly(self) -> Bounds:
        started = time.thread_time()  # what it costs, however busy the machine is
        self.members = self.tree.members()
        before = {pid: proc.resident(pid) for pid in self.members}
        read = {pid: proc.rollup(pid) for pid, resident in before.items() if resident}
        self._known = {}
        for pid, found in read.items():
            resident, mapped = proc.resident_and_mapped(pid)
            if resident:  # else it has ended meanwhile, and the others have what it shared
                self._known[pid] = _Known(
                    # Of another user's process only the resident size can be had.
                    pss=found.pss if found else resident,
                    private=found.private if found else resident,
                    before=before[pid] if found else resident,
                    after=resident,
                    mapped=mapped,
                    shared=found.rss_shmem if found else 0,
                )
        self.held = {pid: known.pss for pid, known in self._known.items()}
        self._files = sum(found.files for found in read.values() if found)
        self._exact = sum(self.held.values())
        self._highest = max(self._highest, self._exact)
        if not self._doubted_members <= set(self._known):  # it cannot be read any more
            self._unconfirmed = max(self._unconfirmed, self._doubted)
        self._doubted, self._doubted_members = 0, set()
        took = time.thread_time() - started
        self._next_exact = time.monotonic() + max(_LEAST_SECONDS, _SHARE * took)
        return Bounds.exactly(self._exact)

    def _may_read(self) -> bool:
        """Whether there is time left for one more exact reading than usual."""
        now = time.monotonic()
        earned = (now - self._allowed_at) / _DOUBT_SHARE
        self._allowed = min(_DOUBT_SECONDS, self._allowed + earned)
        self._allowed_at = now
        return self._allowed > 0


class Filling:
    """Large blocks of a process that are reserved and being filled.

    A block that is made larger is none: what comes with more address space, as Python's arenas and
    lists do, has no end that is known.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._before: list[tuple[Mapping, int]] = []  # and what each was filled with since
        self._next = 0.0
        self.filled = 0
        self.room = 0

    def look(self) -> None:
        """How much they were filled with, and can still take; seldom, since it takes time."""
        if time.monotonic() < self._next:
            return
        started = time.thread_time()  # what it costs, however busy the machine is
        try:
            maps = _large_blocks(self.pid)
        except OSError:
            return
        found = [(block, self._filled(block)) for block in maps]
        self.filled = sum(filled for _, filled in found)
        self.room = sum(block.reserved - block.rss for block, filled in found if filled)
        self._before = found
        took = time.thread_time() - started
        self._next = time.monotonic() + max(1.0, _SHARE * took)

    def _filled(self, block: Mapping) -> int:
        """What it was filled with since it was first seen, without what made it larger."""
        for before, filled in self._before:
            if before.start < block.end and block.start < before.end:
                more = block.rss - before.rss - max(0, block.reserved - before.reserved)
                return max(0, filled + more)
        return 0


def _large_blocks(pid: int) -> list[Mapping]:
    """Blocks that may be filled, with what of them is there: looked up for these alone."""
    with ProcessMemory(pid) as memory:
        if not memory.readable:
            return [m for m in mappings(pid) if _may_fill(m)]
        found = [m for m in listed(pid) if _may_fill(m)]
        return [replace(m, rss=memory.resident(m.start, m.end)) for m in found]


def _may_fill(mapping: Mapping) -> bool:
    return mapping.nameless and mapping.writable and mapping.reserved >= _BLOCK
