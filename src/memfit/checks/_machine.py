"""What checks ask of the machine that they run on."""

from __future__ import annotations

import os


def cores() -> int:
    """The cores that this process, and those that it starts, may use."""
    return len(os.sched_getaffinity(0))
