"""A command that runs in a thread of its caller: which process it is, and a way to end it."""

from __future__ import annotations


class RunControl:
    """Given to `run`, asked by others: `pid` is 0 until the command has started."""

    def __init__(self) -> None:
        self.pid = 0
        self.reason = ""

    def end(self, reason: str) -> None:
        """End the command and all below it, soon; it is noted why."""
        self.reason = reason
