"""How processes end: with all below them, and with the one that started them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Sequence

from memfit.measure.kernel import proc

_PR_SET_PDEATHSIG = 1
# Looked up here: a fork of a program with threads should look nothing up.
_PRCTL = getattr(ctypes.CDLL(None), "prctl", None)


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
