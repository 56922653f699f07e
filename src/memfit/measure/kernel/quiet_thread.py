"""Threads that take no signal away from those that were there before."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable


def quiet_thread(work: Callable[[], object], name: str) -> threading.Thread:
    """A started thread that does not keep the process alive.

    The kernel gives a signal to any thread that does not block it; where that is not the main one,
    a program that waits is not woken.
    """
    thread = threading.Thread(target=work, name=name, daemon=True)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return thread
