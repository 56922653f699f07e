"""Answers a request: who holds this process's memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from .holders import (  # noqa: TID252 - also loaded by path, under another name
    LEAST_ROW,
    array_rows,
    python_rows,
)
from .pace import Interrupted, Pace  # noqa: TID252
from .pools import pools  # noqa: TID252
from .walk_phases import WholeWalk  # noqa: TID252

__all__ = ["SCHEMA", "Interrupted", "answer"]

SCHEMA = 1
_SECONDS = 2.0  # for the search for duplicates


def answer(request: dict[str, Any], *, stop: Callable[[], bool]) -> dict[str, Any]:
    """One JSON document for one request; its fields are told in this package's docstring."""
    if request.get("want") != "holders":
        raise ValueError("want must be holders")
    pace = Pace(stop)
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "pid": os.getpid(),
        "python": ".".join(str(part) for part in sys.version_info[:3]),
        "pools": pools(),
        "duplicates": [],
    }
    pace.rest()
    before = _resident()
    walk = WholeWalk(pace, _roles(request))
    try:
        walk.run()
        found["arrays"], found["python"] = (
            array_rows(walk.blocks),
            python_rows(walk.tree, least=_least(request)),
        )
        if request.get("duplicates"):
            from .duplicates import duplicates  # noqa: TID252

            found["duplicates"] = duplicates(walk.blocks, pace, seconds=_SECONDS)
        objects, complete = walk.objects, walk.complete
    finally:
        walk.forget()
        del walk
    found["walk"] = {
        **pace.report(),
        "objects": objects,
        "complete": complete,
        "added_bytes": max(0, _resident() - before),
    }
    return found


def _roles(request: dict[str, Any]) -> dict[str, str]:
    """What the one who asks says of classes: `package.Class` to what it is in a training."""
    told = request.get("roles")
    if not isinstance(told, dict):
        return {}
    return {str(name): str(role) for name, role in told.items()}


def _least(request: dict[str, Any]) -> int:
    """The least bytes of Python objects that have a row of their own."""
    told = request.get("least")
    return told if type(told) is int and told > 0 else LEAST_ROW


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
