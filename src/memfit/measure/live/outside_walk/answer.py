"""Who holds a process's memory, walked from outside, in the words of the inside view."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from memfit.inside.holders import LEAST_ROW, MOST_ROWS, array_rows, python_rows
from memfit.measure.kernel.limits import available
from memfit.measure.kernel.mappings import mappings
from memfit.measure.kernel.process_memory import ProcessMemory
from memfit.measure.live.outside_walk.interpreter import Interpreter, NotWalkable
from memfit.measure.live.outside_walk.memory_copy import MemoryCopy
from memfit.measure.live.outside_walk.walk_phases import WholeWalk

_LARGEST_COPY = 2**30
_PATIENCE = 10.0  # times the time given
_OF_AVAILABLE = 8  # at most such a part of the memory that the machine has left is used


class OutsideWalk:
    """A walk over the objects of a process, in two parts, each within about so many seconds.

    The run's `variables` come first, then what `libraries` hold. Of its memory at most so much is
    copied at a time. Raises NotWalkable, here and later.
    """

    def __init__(
        self,
        pid: int,
        *,
        roles: Mapping[str, str],
        most_copied: int = _LARGEST_COPY,
        packages: Collection[str] | None = (),
    ) -> None:
        self.pid = pid
        self._memory = ProcessMemory(pid)
        try:
            with _of_one_that_runs():
                maps = mappings(pid)
                if not self._memory.readable:
                    raise NotWalkable("its memory, which may not be read")
                copy = MemoryCopy(
                    maps, self._memory, min(most_copied, available() // _OF_AVAILABLE)
                )
                self._walk = WholeWalk(Interpreter(pid, maps, copy), maps, roles)
                self._walk.packages = packages
        except BaseException:
            self.close()
            raise

    def wait_longer(self) -> None:
        """Let the walk wait for its turn where other work hardly lets it run."""
        self._walk.patience = _PATIENCE

    def variables(self, seconds: float) -> None:
        """What the run's own variables hold."""
        self._go(self._walk.variables, seconds)

    def libraries(self, seconds: float) -> None:
        """What the modules of libraries hold, once all of the variables' was seen."""
        self._go(self._walk.libraries, seconds)

    def _go(self, part: Callable[[float], None], seconds: float) -> None:
        with _of_one_that_runs():
            part(time.monotonic() + seconds)

    def answer(self, *, rows: int = MOST_ROWS, least: int = LEAST_ROW) -> dict[str, Any]:
        """What was found: at most so many `rows`, none of objects of less than `least` bytes."""
        walk = self._walk
        with _of_one_that_runs():
            arrays = array_rows(walk.blocks, f"/proc/{self.pid}/maps", most=rows)
        return {
            "arrays": arrays,
            "python": python_rows(walk.names.tree, most=rows, least=least),
            "duplicates": [],
            "pools": {},
            "walk": {
                "cpu_seconds": 0.0,
                "longest_hold_seconds": 0.0,
                "added_bytes": 0,
                "complete": walk.complete,
                "cut": walk.cut,
            },
        }

    @property
    def ended(self) -> bool:
        """Whether it has seen everything, or its time was too short."""
        return self._walk.complete or self._walk.cut

    def close(self) -> None:
        """Let go of the process."""
        self._memory.__exit__()

    def __enter__(self) -> OutsideWalk:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def _of_one_that_runs() -> Iterator[None]:
    try:
        yield
    except OSError:
        raise NotWalkable("the process, which has ended") from None


def walk_outside(
    pid: int,
    *,
    seconds: float,
    roles: Mapping[str, str],
    most_copied: int = _LARGEST_COPY,
    variables_only: bool = False,
    rows: int = MOST_ROWS,
    least: int = LEAST_ROW,
    packages: Collection[str] | None = (),
    patient: bool = False,
) -> dict[str, Any]:
    """What a process's objects hold, within about so many seconds. Raises NotWalkable.

    One who is `patient` waits longer where other work hardly lets this run.

    With `variables_only`, what packages hold is left out; but what these `packages` hold, or all
    where that is None, is named as if they were the run's own.
    """
    until = time.monotonic() + seconds
    with OutsideWalk(pid, roles=roles, most_copied=most_copied, packages=packages) as walk:
        if patient:
            walk.wait_longer()
        walk.variables(seconds if patient else until - time.monotonic())
        if not variables_only:
            walk.libraries(until - time.monotonic())
        return walk.answer(rows=rows, least=least)
