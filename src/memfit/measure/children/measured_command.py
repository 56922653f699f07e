"""Run a command and measure the peak of its tree from outside, within a memory and a time limit."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memfit.measure.children.process_lifetime import own_session
from memfit.measure.children.supervision import Supervised, supervise

_TAIL = 4000


@dataclass(frozen=True, kw_only=True)
class Measured(Supervised):
    """What a command took, how it ended, and the last that it printed."""

    output: str


def measure(
    command: Sequence[str],
    *,
    memory: int,
    timeout: float,
    alive: Callable[[int], None] | None = None,
) -> Measured:
    """Run a command to its end, or to a limit, and return the peak of its tree."""
    with tempfile.TemporaryFile() as output:
        with own_session(command, output) as process:
            seen = supervise(process, memory=memory, timeout=timeout, alive=alive)
        output.seek(max(0, output.seek(0, os.SEEK_END) - _TAIL))
        return Measured(**vars(seen), output=output.read().decode(errors="replace"))
