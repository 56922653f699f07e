"""What an explanation of a live process tree says: its parts by layer, threads, and what grows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from memfit.model.comparison import Changed
from memfit.model.finding import Advice
from memfit.model.ledger import Kind, Ledger
from memfit.model.notebook import ShownInNotebooks
from memfit.model.plan import Limit


class Layer(StrEnum):
    """What a stretch of a process's memory is for, as far as that shows from outside."""

    LIBRARIES = "libraries"
    FILES = "mapped files"
    OBJECTS = "Python objects"
    HEAP = "malloc heap"
    ARENAS = "malloc arenas"
    BLOCKS = "large blocks"
    STACKS = "thread stacks"
    SHARED = "shared memory"
    KERNEL = "kernel"
    UNKNOWN = "unattributed"


@dataclass(frozen=True, kw_only=True)
class Part:
    """One row of one process. `bytes` is its PSS; `reserved` is address space.

    Of Python's pools, `used` is what objects take.
    """

    name: str
    layer: Layer
    bytes: int
    resident: int
    reserved: int
    private: int
    where: str
    huge: int = 0
    swap: int = 0
    used: int = 0
    spans: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, kw_only=True)
class ThreadPool:
    """Threads that one library started."""

    name: str
    threads: int
    names: tuple[str, ...]
    reserved: int
    resident: int

    def with_those_of(self, other: ThreadPool) -> ThreadPool:
        """The same pool in two processes, taken together."""
        return ThreadPool(
            name=self.name,
            threads=self.threads + other.threads,
            names=tuple(sorted({*self.names, *other.names})),
            reserved=self.reserved + other.reserved,
            resident=self.resident + other.resident,
        )


@dataclass(frozen=True, kw_only=True)
class Native:
    """What C and C++ hold in the heap, found by following pointers from outside.

    `libraries` have bytes of objects; `tensors` and `arrays` are the numbers of larger ones, each
    block with its address, its size and what is resident of it, whoever holds them; `free` is
    what malloc keeps of the heap. `threads` have what is in use in the arenas of each pool.
    """

    LEAST_NUMBERS: ClassVar[int] = 65536  # smaller ones are not told apart by processes either

    libraries: Mapping[str, int] = field(default_factory=dict)
    tensors: tuple[tuple[int, int, int], ...] = ()
    arrays: tuple[tuple[int, int, int], ...] = ()
    free: int = 0
    threads: Mapping[str, int] = field(default_factory=dict)
    free_in_arenas: int = 0
    cut: bool = False


@dataclass(frozen=True, kw_only=True)
class ProcessView:
    """One process of the tree, from outside."""

    pid: int
    parent: int
    name: str
    command: str
    seconds: float
    rss: int
    pss: int
    private: int
    reserved: int
    parts: tuple[Part, ...]
    pools: tuple[ThreadPool, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    native: Native = field(default_factory=Native)

    @property
    def threads(self) -> int:
        return sum(pool.threads for pool in self.pools)


@dataclass(frozen=True, kw_only=True)
class Repeated:
    """The same data held more than once, or in a wider type than it needs."""

    kind: str
    holders: tuple[str, ...]
    saves_bytes: int
    message: str


@dataclass(frozen=True, kw_only=True)
class HeldArrays:
    """Arrays or tensors of one holder, as the process told.

    `blocks` are the addresses of its larger blocks with what is resident of each, cut where
    mappings end; `small` is the sum of all others. What is not its `own` is a file's or shared.
    """

    path: str
    bytes: int
    count: int
    what: str
    own: bool
    blocks: tuple[tuple[int, int], ...]
    small: int
    also: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class HeldObjects:
    """Python objects of one holder: small ones in Python's pools, large ones in malloc's heap.

    A holder is a path `of_run`, a package, or nobody that can be found (not `reached`).
    """

    path: str
    of_run: bool
    reached: bool = True
    small: int
    large: int
    count: int
    elements: int = 0


@dataclass(frozen=True, kw_only=True)
class Told:
    """What one process said about itself, with the residency that the kernel says.

    Where it was not asked, or did not answer, its objects were read from `outside`. What is not
    `complete` ended before all of them were seen.
    """

    pid: int
    arrays: tuple[HeldArrays, ...]
    objects: tuple[HeldObjects, ...]
    repeated: tuple[Repeated, ...]
    free: int
    seconds: float
    longest_hold_seconds: float
    pools: Mapping[str, int]
    notes: tuple[str, ...] = ()
    outside: bool = False
    complete: bool = True


@dataclass(frozen=True, kw_only=True)
class Holder:
    """Arrays or objects that one holder keeps. `bytes` is what is resident.

    What is not its `own` lies in a file or in shared memory, and counts there. Those that the
    process `told` of come from the inside view; others were found from outside.
    """

    path: str
    kind: Kind
    bytes: int
    reserved: int
    count: int
    what: str
    own: bool = True
    told: bool = True
    also: tuple[str, ...] = ()
    pid: int = 0


@dataclass(kw_only=True)
class Dealt:
    """One process dealt out: rows by holder, and the parts of layers that nobody claimed."""

    holders: list[Holder] = field(default_factory=list)
    left: list[Part] = field(default_factory=list)
    named: int = 0
    private: int = 0

    @property
    def unnamed(self) -> int:
        """Private memory that has no holder's name."""
        return max(0, self.private - self.named)


@dataclass(frozen=True, kw_only=True)
class HeldReadings:
    """The readings of one process, in turn: its private memory, and what of it had a holder.

    The one that left the least without a holder was `kept`.
    """

    pid: int
    named: tuple[int, ...]
    private: tuple[int, ...]
    kept: int = 0

    @property
    def held_shares(self) -> tuple[float, ...]:
        return tuple(map(_share, self.named, self.private))


def _share(named: int, private: int) -> float:
    return min(1.0, named / max(1, private))


@dataclass(frozen=True, kw_only=True)
class Inside:
    """Who holds the memory: what processes told (`asked`), or what was read from `outside`.

    With repeated data, and what telling cost.
    """

    holders: tuple[Holder, ...]
    repeated: tuple[Repeated, ...]
    asked: tuple[int, ...]
    held_share: float
    seconds: float
    longest_hold_seconds: float
    readings: tuple[HeldReadings, ...] = ()
    pools: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    outside: tuple[int, ...] = ()

    @property
    def taken(self) -> int:
        """How many readings of its processes were taken."""
        return sum(len(r.named) for r in self.readings)

    @property
    def dropped(self) -> int:
        """How many of them were dropped for another."""
        return self.taken - len(self.readings)

    @property
    def first_held_share(self) -> float:
        """What `held_share` would be, had the first reading of each process been kept."""
        return _share(
            sum(r.named[0] for r in self.readings), sum(r.private[0] for r in self.readings)
        )


@dataclass(frozen=True, kw_only=True)
class Grown(Changed):
    """A row that changed between two readings."""

    seconds: float

    @property
    def bytes_per_second(self) -> float:
        return self.bytes / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is configured beside what is used."""

    name: str
    configured: str
    used: str


@dataclass(frozen=True, kw_only=True)
class Explanation(ShownInNotebooks):
    """Where the memory of a process tree goes."""

    pid: int
    processes: tuple[ProcessView, ...]
    ledger: Ledger
    pss_bytes: int
    named_share: float
    limit: Limit
    available_bytes: int
    settings: tuple[Setting, ...]
    device_bytes: Mapping[str, int] = field(default_factory=dict)
    inside: Inside | None = None
    growth: tuple[Grown, ...] = ()
    growth_seconds: float = 0.0
    advice: tuple[Advice, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def main(self) -> ProcessView:
        return self.processes[0]

    @property
    def pools(self) -> dict[str, ThreadPool]:
        """The threads of all processes, by pool."""
        found: dict[str, ThreadPool] = {}
        for pool in (pool for process in self.processes for pool in process.pools):
            same = found.get(pool.name)
            found[pool.name] = pool if same is None else same.with_those_of(pool)
        return found

    @property
    def huge_bytes(self) -> int:
        return sum(part.huge for p in self.processes for part in p.parts)

    @property
    def swapped_bytes(self) -> int:
        return sum(part.swap for p in self.processes for part in p.parts)

    @property
    def unattributed_bytes(self) -> int:
        """What no row explains."""
        return self.ledger.unattributed()

    @property
    def headroom_bytes(self) -> int:
        """What may still be added: up to the limit, or to what the machine has left."""
        return min(self.limit.bytes - self.pss_bytes, self.available_bytes)
