"""Run a command and measure the peak of its tree from outside, within a memory and a time limit."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memfit.errors import UsageError
from memfit.measure.children.supervision import supervise

_TAIL = 4000


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a command took and how it ended; `outside_bytes` as in `Supervised`."""

    peak_bytes: int
    outside_bytes: int
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
    """Run a command to its end, or to a limit, and return the peak of its tree."""
    with tempfile.TemporaryFile() as output:
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
        try:
            seen = supervise(process, memory=memory, timeout=timeout, alive=alive)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(max(0, output.seek(0, os.SEEK_END) - _TAIL))
        said = output.read().decode(errors="replace")
    return Measured(
        peak_bytes=seen.peak_bytes,
        outside_bytes=seen.outside_bytes,
        exit_code=None if seen.over_limit or seen.timed_out else process.returncode,
        seconds=seen.seconds,
        output=said,
        over_limit=seen.over_limit,
        timed_out=seen.timed_out,
    )
