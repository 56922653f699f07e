"""What the programs of all reference systems share: progress, lines, devices, and how they end."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import TypeVar

from memfit.errors import MemfitError, UsageError

_LIVE_SECONDS, _LINE_SECONDS = 0.2, 20
_INTERRUPTED = 130
Options = TypeVar("Options")
Report = Callable[[str, float], None]  # takes what a training does, and how far it is


class Progress:
    """How far an iteration is, on standard error: a line that renews itself, or one at times."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.live = sys.stderr.isatty()
        self._every = _LIVE_SECONDS if self.live else _LINE_SECONDS
        self._next = time.monotonic() + self._every

    def __call__(self, stage: str, share: float) -> None:
        now = time.monotonic()
        if self.quiet or now < self._next:
            return
        self._next = now + self._every
        end = "\r" if self.live else "\n"
        sys.stderr.write(f"{stage} {share:4.0%}{end}")
        sys.stderr.flush()


def say(text: str, *, aside: bool = False) -> None:
    """Print a line at once; on standard error where it stands aside."""
    stream = sys.stderr if aside else sys.stdout
    stream.write(text + "\n")
    stream.flush()


def device_of(name: str) -> str:
    """The device that a name stands for, where it is there."""
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError):
        raise UsageError(f"there is no device {name!r} here: give cpu, or auto") from None
    return name


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Processes that are started anew here do not hear Ctrl-C, which reaches all of a terminal.

    The main process hears it, and closes the others in order.
    """
    resource_tracker.ensure_running()  # first, since starting it takes the signal back
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ended(program: Callable[[Options], int], options: Options) -> int:
    """Run a program to its end: what went wrong becomes a sentence and an exit code."""
    try:
        return program(options)
    except MemfitError as error:
        say(f"error: {error}", aside=True)
        return error.exit_code
    except ModuleNotFoundError as error:
        say(f"error: {error.name} is not installed: pip install 'memfit[systems]'", aside=True)
        return 2
    except KeyboardInterrupt:
        return _INTERRUPTED
