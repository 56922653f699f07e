"""Wait for a child process within a time and a memory limit, and measure the peak of its tree."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from memfit.measure.kernel import proc

_LOOK_SECONDS = 0.01
_TREE_SECONDS = 0.1  # between two looks at all processes, which hold them up


@dataclass(frozen=True, kw_only=True)
class Supervised:
    """What a child's tree held at the most, as if alone on the machine, and how the wait ended.

    `outside_bytes` is the most that was added to its PSS for that; `exit_code` is None of a child
    that had not ended by itself.
    """

    peak_bytes: int
    outside_bytes: int
    seconds: float
    exit_code: int | None
    over_limit: bool
    timed_out: bool


class Ending(Protocol):
    """A process that is waited for."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None:
        """Its exit code, None as long as it runs."""


def supervise(
    process: Ending,
    *,
    tree: proc.Tree | None = None,
    memory: int,
    timeout: float,
    alive: Callable[[int], None] | None = None,
    until: Callable[[], bool] = lambda: False,
) -> Supervised:
    """Wait until a child ends, or goes over a limit, or `until` says so; nothing is ended here.

    `tree` is what is measured, if that is not all below it. `alive` gets the peak so far with each
    look at the tree.
    """
    started = time.monotonic()
    peak, next_tree = TreePeak(tree or proc.Tree(main=process.pid)), 0.0
    over = late = False
    while process.poll() is None and not until():
        now = time.monotonic() - started
        if now >= next_tree:
            peak.look_at_tree()
            next_tree = time.monotonic() - started + _TREE_SECONDS
            if alive is not None:
                alive(peak.bytes)
        peak.look()
        over, late = peak.bytes > memory, now > timeout
        if over or late:
            break
        time.sleep(_LOOK_SECONDS)  # waiting for its end would wake up far more often
    return Supervised(
        peak_bytes=peak.bytes,
        outside_bytes=peak.outside,
        seconds=time.monotonic() - started,
        exit_code=None if over or late else process.poll(),
        over_limit=over,
        timed_out=late,
    )


class TreePeak:
    """The most that a process and all below it have held, as if alone on the machine.

    All processes are added up now and then. In between, the kernel's own high-water mark of the
    main one is read often, so that no spike of it is missed: what it rose by comes on top.
    """

    def __init__(self, tree: proc.Tree) -> None:
        self.pid = tree.main
        self.bytes = 0
        self.outside = 0
        self._of = tree
        self._tree = proc.TreeMemory()
        self._high = 0

    def look_at_tree(self) -> None:
        """Add up all processes."""
        self._tree = self._of.memory()
        self.bytes = max(self.bytes, self._tree.alone)
        self.outside = max(self.outside, self._tree.outside)

    def look(self) -> None:
        """See whether the main process has been higher than ever since the last look."""
        high = proc.high_water(self.pid)
        main = self._tree.main
        if high > self._high and main is not None:
            risen = high - main.rss
            if self._tree.processes > 1:
                # Pages that others of the tree may have had before; they stay, and will be seen.
                risen -= max(0, proc.mapped(self.pid) - (main.rss - main.anonymous))
            self.bytes = max(self.bytes, self._tree.alone + risen)
        self._high = high
