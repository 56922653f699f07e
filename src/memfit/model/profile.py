"""What a profile of an environment says: how memory goes on, who holds it, what an env costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from memfit.model.notebook import ShownInNotebooks

_APART = 512 << 10  # bytes: two processes that do the same differ by as much
WAITING = "waiting for it"  # the stage of a profile between two readings


class MemoryVerdict(StrEnum):
    """How the memory of an environment goes on."""

    STABLE = "stable"
    FILLING = "filling"  # it grows up to a size that is known
    RETAINED = "retained"  # malloc keeps what was freed
    LEAKING = "leaking"


class Counted(StrEnum):
    """What is counted at a reading, and may grow."""

    PYTHON = "Python objects"
    MALLOC = "malloc"  # arrays, tensors, and what C and C++ hold
    MAPPED = "mapped memory"  # private, and without a name
    SHARED = "shared memory"  # segments and shared mappings: mmap of Python makes these
    OTHERS = "other processes' memory"
    THREADS = "threads"
    PROCESSES = "processes"
    FILES = "file descriptors"


class GrowthKind(StrEnum):
    """What grows, as people say it."""

    PYTHON = "Python objects"
    ARRAYS = "arrays"
    NATIVE = "native memory"
    MAPPED = "mapped memory"
    SHARED = "shared memory"
    OTHERS = "memory of worker processes"
    THREADS = "threads"
    PROCESSES = "processes"
    FILES = "file descriptors"


@dataclass(frozen=True, kw_only=True)
class Stepping:
    """How a child steps an environment.

    `policy` is `random`, `module:policy`, or a file of recorded actions. With `observe`, facts of
    observations and of arrays that several envs have are gathered in place of readings; with
    `trace`, the lines that allocate. `workers` steps each env in a process of its own. `options`
    are given to what makes an environment.
    """

    target: str
    kind: str
    n_envs: int = 1
    policy: str = "random"
    seed: int = 0
    observe: bool = False
    trace: bool = False
    workers: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class EnvReading:
    """One moment of an environment's process, which waited meanwhile.

    `held` is its PSS without files, that of processes below it included. `counts` are bytes in use,
    or numbers, by `Counted`; only `full` readings have all of them. `free` is what malloc keeps,
    `whole` all of the tree's PSS. `ended` says that an episode had just ended, `collected` that
    Python's garbage had been. `pools` are those of Python's that hold something, in bytes; `apart`
    are pages that are neither Python's for its objects nor malloc's. `rooms` are larger stretches
    of address space: their beginnings with what they reserve and what of that is resident.
    """

    frame: int
    episode: int
    seconds: float
    held: int
    whole: int
    counts: Mapping[Counted, int]
    free: int = 0
    blocks: int = 0  # of memory that malloc has mapped, in bytes
    pools: int = 0
    apart: int = 0
    ended: bool = True
    collected: bool = False
    full: bool = True
    leg: int = 0
    rooms: Mapping[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Growing:
    """One thing that grows: so much a frame and an episode, with an interval around the latter."""

    what: Counted
    per_frame: float
    per_episode: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Bound:
    """What ends a growth: whose capacity, of how many entries or bytes, and how many there are."""

    path: str
    what: str
    capacity: int
    length: int


@dataclass(frozen=True, kw_only=True)
class GrownHolder:
    """Who holds what grew: the path, the class that keeps it and where that is written."""

    path: str
    bytes: int
    what: str  # "arrays" or "Python objects"
    owner: str = ""
    where: str = ""
    elements: int = 0
    bound: Bound | None = None
    per_frame: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Site:
    """A line that allocated what was still there at the end.

    Where a line of the user's own called a library for it, `by` is the library's line.
    """

    where: str
    bytes: int
    count: int
    by: str = ""


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The verdict over readings, with its evidence."""

    verdict: MemoryVerdict
    why: str
    growing: tuple[Growing, ...] = ()
    bytes_per_frame: float = 0.0
    bytes_per_episode: float = 0.0
    low: float = 0.0
    high: float = 0.0
    grown_bytes: int = 0
    ends_at_bytes: int | None = None
    trimmed_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class EnvCost:
    """The memory of a process with so many envs, stepped for a while."""

    n_envs: int
    workers: bool
    bytes: int
    private: int
    processes: int = 1


@dataclass(frozen=True, kw_only=True)
class ObservationPart:
    """One array of an observation."""

    key: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    fresh: bool = True  # a new array at each step; else the same one again
    view_of: int = 0  # bytes of the array that it is a view of, 0 where it is none
    repeats: float = 0.0  # share of its rows that the step before had, moved or not
    within: str = ""  # the key of another part that contains it


@dataclass(frozen=True, kw_only=True)
class Shareable:
    """An array that several envs have, each a copy of its own."""

    path: str
    bytes: int
    copies: int
    saves_bytes: int


@dataclass(frozen=True, kw_only=True)
class Stepped:
    """What a child that stepped an environment says at its end."""

    env: str = ""
    frames: int = 0
    episodes: int = 0
    observation: tuple[ObservationPart, ...] = ()
    allocated_per_step: int = 0
    copied_per_step: int = 0
    shareable: tuple[Shareable, ...] = ()
    shared_bytes: int = 0
    sites: tuple[Site, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Profile(ShownInNotebooks):
    """The answer of `memfit profile`."""

    target: str
    judgement: Judgement
    kind: GrowthKind | None = None
    readings: tuple[EnvReading, ...] = ()
    holders: tuple[GrownHolder, ...] = ()
    sites: tuple[Site, ...] = ()
    costs: tuple[EnvCost, ...] = ()
    bytes_per_env: float | None = None
    bytes_per_worker: float | None = None
    stepped: Stepped = field(default_factory=Stepped)
    frames: int = 0
    episodes: int = 0
    frames_per_second: float = 0.0
    peak_bytes: int = 0
    changed: tuple[BaselineChange, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def verdict(self) -> MemoryVerdict:
        return self.judgement.verdict

    @property
    def unattributed_bytes(self) -> int:
        """What grew and has no holder that was found."""
        return max(0, self.judgement.grown_bytes - sum(holder.bytes for holder in self.holders))

    def env_noise(self, *, workers: bool) -> int:
        """What one more env could cost without being seen."""
        most = max((cost.n_envs for cost in self.costs if cost.workers == workers), default=1)
        return _APART // max(1, most - 1)


@dataclass(frozen=True, kw_only=True)
class BaselineChange:
    """One row that differs from an earlier profile, and whether by more than noise."""

    name: str
    before: float
    after: float
    beyond_noise: bool

    @property
    def change(self) -> float:
        return self.after - self.before


@dataclass(frozen=True, kw_only=True)
class ProfileStep:
    """How far a profile is: frames of so many, a second, and what is held."""

    stage: str
    frame: int
    of: int
    frames_per_second: float
    bytes: int
