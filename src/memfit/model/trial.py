"""A trial: what was seen of a training loop that ran on as it is for a few updates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class TrialEnd(StrEnum):
    """Why a trial came to its end."""

    SEEN = "seen"  # whole cycles were seen, and their peak has stopped growing
    WHOLE = "whole"  # the script itself has ended
    TIME = "time"
    MEMORY = "memory"


@dataclass(frozen=True, kw_only=True)
class TrialArrays:
    """The arrays of one holder, by its path from the run's variables.

    `resident` of their `bytes` are in memory. `shape` is that of the largest of `count`. Where they
    are in a queue of bounded length, it has `elements` of at most `capacity`; in a list that
    `grows` with the run, it has so many and no bound. They may be `mapped` from files, or shared
    with other processes.
    """

    path: str
    bytes: int
    resident: int
    count: int = 1
    dtype: str = ""
    shape: tuple[int, ...] = ()
    elements: int = 0
    capacity: int = 0
    grows: bool = False
    mapped: bool = False


@dataclass(frozen=True, kw_only=True)
class LoopBound:
    """A loop at work: `done` of `total` turns, or of what its condition counts.

    One that `counts` is a `for` over so many turns, of which the last is not done yet; else `done`
    is a variable of the program's that its condition compares.
    """

    done: int
    total: int
    counts: bool
    line: str


@dataclass(frozen=True, kw_only=True)
class RunLength:
    """Env steps of a whole run, and the loop that says so; not `exact` where its turns differ."""

    steps: int
    where: str
    exact: bool


@dataclass(frozen=True, kw_only=True)
class TrialAgain:
    """Peaks by phase, and resident bytes of arrays, of a short trial with other settings.

    `objects` are the bytes that it held at its end, and no array explained.
    """

    knobs: Mapping[str, int]
    peaks: Mapping[str, int]
    held: Mapping[str, int]
    objects: int = 0


@dataclass(frozen=True, kw_only=True)
class TrialReading:
    """Peaks by phase of a process tree, and what its variables held.

    `built` are its bytes where it first stepped an env or updated, `now` and `free` its bytes, and
    those that malloc held and nobody used, at the end; `files` of `now` are pages of mapped files,
    arrays apart; `held` are resident bytes of the rows of its arrays. The first update came after
    `first_update` env steps; `played` of all `env_steps` were recorded ones, played back. `whole`
    says that the last update was a compiled program of the whole training, which had not come to
    its end, `elsewhere` that the script only waited for processes of its own. So many things that
    come every so often were `brought` forward. `run` is when the run ends, where its loops say so.
    `again` is a second trial, with other settings.
    """

    updates: int
    cycles: int
    env_steps: int
    seconds: float
    ended: TrialEnd
    played: int = 0
    first_update: int = 0
    peaks: Mapping[str, int] = field(default_factory=dict)
    built: int = 0
    now: int = 0
    free: int = 0
    files: int = 0
    held: Mapping[str, int] = field(default_factory=dict)
    whole: bool = False
    elsewhere: bool = False
    brought: int = 0
    run: RunLength | None = None
    again: TrialAgain | None = None

    @property
    def length(self) -> str:
        """How much was seen, for evidence: its updates, or what it did without any."""
        if self.whole and self.updates == 1:
            return f"{self.seconds:.0f} s, in a compiled program of the whole training"
        if self.elsewhere:
            return f"{self.seconds:.0f} s, in which other processes of the script worked"
        if self.updates:
            return f"{self.updates:,} updates"
        if self.env_steps:
            return f"{self.env_steps:,} env steps, no update was recognised"
        return f"{self.cycles:,} turns of its loop, no update was recognised"


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a script came that did not learn."""

    env_steps: int = 0
    updates: int = 0
    seconds: float = 0.0
