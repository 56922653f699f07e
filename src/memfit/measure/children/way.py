"""The two ways in which a disposable child is held."""

from __future__ import annotations

from enum import StrEnum


class Way(StrEnum):
    """What holds a child."""

    NAMESPACES = "namespaces"  # the kernel: see `warden` and `private_files`
    SHIELD = "shield"  # the child itself, before it runs the target: see `memfit.child`
