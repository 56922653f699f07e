"""Messages to people, on standard error: progress and errors. Results never go there."""

from __future__ import annotations

import sys
from collections.abc import Callable

from memfit.errors import MemfitError


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
