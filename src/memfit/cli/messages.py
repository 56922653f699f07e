"""Messages to people, on standard error: progress and errors. Results never go there."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from memfit.errors import MemfitError, visible

if TYPE_CHECKING:
    from memfit.model import ProfileStep, SweepStep


def report(error: MemfitError) -> None:
    """Say what went wrong; what the target itself printed comes first."""
    if error.output:
        sys.stderr.write(visible(error.output).rstrip("\n") + "\n\n")
    sys.stderr.write(f"memfit: {error}\n")


def report_usage(error: Any) -> None:
    """Say what typer found wrong with the words of a command line, which may contain anything."""
    text = io.StringIO()
    error.show(text)
    sys.stderr.write(visible(text.getvalue()))


def progress(*, quiet: bool) -> Callable[[str], None] | None:
    """A function that tells what is being done, or None where nobody wants to know."""
    if quiet:
        return None

    def tell(text: str) -> None:
        sys.stderr.write(f"memfit: {visible(text)}\n")
        sys.stderr.flush()

    return tell


def bar(*, quiet: bool) -> Callable[[SweepStep], None] | None:
    """A function that shows how far a sweep is: a bar at a terminal, else a line for each run."""
    if quiet:
        return None
    moves = sys.stderr.isatty()

    def show(step: SweepStep) -> None:
        from memfit.render import sweep_line

        ended = step.outcome is not None
        if moves:
            sys.stderr.write(f"\r\033[K{sweep_line(step, bar=True)}" + ("\n" if ended else ""))
        elif ended:
            sys.stderr.write(f"{sweep_line(step, bar=False)}\n")
        sys.stderr.flush()

    return show


def profile_bar(*, quiet: bool) -> Callable[[ProfileStep | None], None] | None:
    """A function that shows how far a profile is; None ends the line."""
    if quiet:
        return None
    moves = sys.stderr.isatty()
    last = ""
    from memfit.model.profile import WAITING

    def show(step: ProfileStep | None) -> None:
        nonlocal last
        from memfit.render import profile_line

        if step is None:
            sys.stderr.write("\n" if moves else "")
        elif moves:
            sys.stderr.write(f"\r\033[K{profile_line(step, bar=True)}")
        elif step.stage not in (last, WAITING):  # in a file, a line for each stage
            last = step.stage
            sys.stderr.write(f"{profile_line(step, bar=False)}\n")
        sys.stderr.flush()

    return show
