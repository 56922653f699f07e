"""What kept a child, in which a target ran, from changing anything outside it."""

from __future__ import annotations

from enum import StrEnum


class Confinement(StrEnum):
    """What held, the strongest first."""

    NAMESPACES = "namespaces"  # the kernel's: files, processes, network, shared memory
    LANDLOCK = "landlock"  # a shield in Python, and the kernel's Landlock behind it
    AUDITING = "auditing"  # a shield in Python, and Python's own auditing behind it
