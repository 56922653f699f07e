"""Who holds a process's memory, walked from outside, in the words of the inside view."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from memfit.inside.holders import LEAST_ROW, MOST_ROWS, array_rows, python_rows
from memfit.measure.kernel.limits import available
from memfit.measure.kernel.mappings import mappings
from memfit.measure.kernel.process_memory import ProcessMemory
from memfit.measure.live.outside_walk.interpreter import Interpreter, NotWalkable
from memfit.measure.live.outside_walk.memory_copy import MemoryCopy
from memfit.measure.live.outside_walk.walk_phases import WholeWalk

_LARGEST_COPY = 2**30
_OF_AVAILABLE = 8  # at most such a part of the memory that the machine has left is used


def walk_outside(
    pid: int,
    *,
    seconds: float,
    roles: Mapping[str, str],
    most_copied: int = _LARGEST_COPY,
    variables_only: bool = False,
    rows: int = MOST_ROWS,
    least: int = LEAST_ROW,
) -> dict[str, Any]:
    """What a process's objects hold, within about so many seconds. Raises NotWalkable.

    Of its memory at most so much is copied at a time. With `variables_only`, what packages hold
    is left out. There are at most so many `rows`, and of Python objects none of less than `least`
    bytes.
    """
    until = time.monotonic() + seconds
    try:
        maps = mappings(pid)
        with ProcessMemory(pid) as memory:
            if not memory.readable:
                raise NotWalkable("its memory, which may not be read")
            copy = MemoryCopy(maps, memory, min(most_copied, available() // _OF_AVAILABLE))
            walk = WholeWalk(Interpreter(pid, maps, copy), maps, roles, until)
            complete = walk.walk(variables_only=variables_only)
            arrays = array_rows(walk.blocks, f"/proc/{pid}/maps", most=rows)
    except OSError:
        raise NotWalkable("the process, which has ended") from None
    return {
        "arrays": arrays,
        "python": python_rows(walk.names.tree, most=rows, least=least),
        "duplicates": [],
        "pools": {},
        "walk": {
            "cpu_seconds": 0.0,
            "longest_hold_seconds": 0.0,
            "added_bytes": 0,
            "complete": complete,
        },
    }
