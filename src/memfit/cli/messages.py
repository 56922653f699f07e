"""Messages to people, on standard error: progress and errors. Results never go there."""

from __future__ import annotations

import sys
from collections.abc import Callable

from memfit.errors import MemfitError
from memfit.model import SweepStep
from memfit.units import format_bytes

_CELLS = 24


def report(error: MemfitError) -> None:
    """Say what went wrong; what the target itself printed comes first."""
    if error.output:
        sys.stderr.write(error.output.rstrip("\n") + "\n\n")
    sys.stderr.write(f"memfit: {error}\n")


def progress(*, quiet: bool) -> Callable[[str], None] | None:
    """A function that tells what is being done, or None where nobody wants to know."""
    if quiet:
        return None

    def tell(text: str) -> None:
        sys.stderr.write(f"memfit: {text}\n")
        sys.stderr.flush()

    return tell


def bar(*, quiet: bool) -> Callable[[SweepStep], None] | None:
    """A function that shows how far a sweep is: a bar at a terminal, else a line for each run."""
    if quiet:
        return None
    moves = sys.stderr.isatty()

    def show(step: SweepStep) -> None:
        ended = step.outcome is not None
        done = step.number if ended else step.number - 1
        filled = _CELLS * done // step.of
        cells = f"[{'#' * filled}{'-' * (_CELLS - filled)}] "
        what = step.outcome.value if step.outcome is not None else "running"
        text = (
            f"memfit: {cells if moves else ''}run {step.number} of {step.of}: {step.knob} "
            f"{step.value:,}, {what}, {format_bytes(step.peak_bytes)}, {step.seconds:.0f} s"
        )
        if moves:
            sys.stderr.write(f"\r\033[K{text}" + ("\n" if ended else ""))
        elif ended:
            sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    return show
