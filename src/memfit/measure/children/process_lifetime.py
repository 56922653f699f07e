"""How processes are started, and ended: with all below them, and with the one that started them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from memfit.errors import UsageError
from memfit.measure.kernel import proc

_PR_SET_PDEATHSIG = 1
# Looked up here: a fork of a program with threads should look nothing up.
_PRCTL = getattr(ctypes.CDLL(None), "prctl", None)


def start(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a command; UsageError where that cannot be done."""
    try:
        return subprocess.Popen(command, **options)
    except OSError as error:
        raise UsageError(
            f"cannot start {command[0]}: {error.strerror}. Check the command after --"
        ) from None
    except ValueError as error:  # a zero byte in a word
        raise UsageError(f"cannot start {command[0]!r}: {error}. Check the command") from None


@contextlib.contextmanager
def own_session(
    command: Sequence[str], output: IO[bytes], env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A command without standard input, which is ended with all of its group."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT}
    process = start(command, **streams, env=env, start_new_session=True)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()


def end_tree(pid: int) -> None:
    """End a process and all below it; stopped first, so that none starts another meanwhile."""
    members = [pid, *proc.descendants(pid)]
    signal_all(members, signal.SIGSTOP)
    signal_all(members, signal.SIGKILL)


def signal_all(pids: Sequence[int], number: signal.Signals) -> None:
    """Send a signal to those of these processes that are there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def end_with_parent(parent: int) -> None:
    """Have the kernel end this process when the one that started it ends, however it does."""
    if _PRCTL is not None:
        _PRCTL(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended before this could be said
        os._exit(1)
