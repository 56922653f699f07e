"""`run`: start a command with the inside view ready."""

from __future__ import annotations

from collections.abc import Sequence


def run(command: Sequence[str]) -> int:
    """Run a command so that `explain` can see who holds its memory; return its exit code.

    Standard input and output are the command's, signals are passed on to it, and it ends with this
    process. 128 + n is returned where signal n has ended it.
    """
    from memfit.measure import launch

    return launch.run(command)
