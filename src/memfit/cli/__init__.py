"""The command line: one small file a command; it parses, calls the API and renders."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Until its commands are loaded, Ctrl-C ends memfit as it ends any program: nothing is there yet
    that would have to be put away, and a traceback would tell nobody anything.
    """
    usual = signal.getsignal(signal.SIGINT)
    ours = usual is signal.default_int_handler
    ours = ours and threading.current_thread() is threading.main_thread()
    if ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from memfit.cli.app import main as run
    finally:
        if ours:
            signal.signal(signal.SIGINT, usual)
    return run(argv)


__all__ = ["main"]
