"""Run a command and measure the peak of its tree from outside, within a memory and a time limit."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memfit.errors import UsageError
from memfit.measure.kernel import proc

_LOOK_SECONDS = 0.01
_TREE_SECONDS = 0.1  # between two looks at all processes, which hold them up
_TAIL = 4000


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a command took and how it ended."""

    peak_bytes: int
    exit_code: int | None
    seconds: float
    output: str
    over_limit: bool = False
    timed_out: bool = False


def measure(
    command: Sequence[str],
    *,
    memory: int,
    timeout: float,
    alive: Callable[[int], None] | None = None,
) -> Measured:
    """Run a command to its end, or to a limit, and return the peak of its tree.

    The kernel's own high-water mark of the main process is read often, so that no spike of it is
    missed; where there are more processes, all of them are added up now and then.
    """
    with tempfile.TemporaryFile() as output:
        started = time.monotonic()
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(
                f"cannot start {command[0]}: {error.strerror}. Check the command after --"
            ) from None
        peak, over, late, next_tree = 0, False, False, 0.0
        try:
            while process.poll() is None:
                now = time.monotonic() - started
                peak = max(peak, proc.high_water(process.pid))
                if now >= next_tree:
                    if proc.children(process.pid):
                        peak = max(peak, proc.tree_bytes(process.pid))
                    next_tree = time.monotonic() - started + _TREE_SECONDS
                    if alive is not None:
                        alive(peak)
                over, late = peak > memory, now > timeout
                if over or late:
                    break
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_LOOK_SECONDS)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(max(0, output.seek(0, os.SEEK_END) - _TAIL))
        said = output.read().decode(errors="replace")
    return Measured(
        peak_bytes=peak,
        exit_code=None if over or late else process.returncode,
        seconds=time.monotonic() - started,
        output=said,
        over_limit=over,
        timed_out=late,
    )
