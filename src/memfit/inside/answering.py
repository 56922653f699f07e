"""From a request to its answer."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from .pace import Interrupted, Pace  # noqa: TID252 - also loaded by path, under another name

__all__ = ["SCHEMA", "Interrupted", "answer"]

SCHEMA = 1
_WANTS = ("holders", "pools", "alive")
_SECONDS = 2.0
_MOST_SECONDS = 60.0


def answer(request: dict[str, Any], *, stop: Callable[[], bool]) -> dict[str, Any]:
    """One JSON document for one request; its fields are told in this package's docstring."""
    want = request.get("want")
    if want not in _WANTS:
        raise ValueError(f"want must be one of {', '.join(_WANTS)}")
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "pid": os.getpid(),
        "python": ".".join(str(part) for part in sys.version_info[:3]),
    }
    if want == "alive":
        return found
    from .pools import pools, versions  # noqa: TID252

    pace = Pace(stop)
    found["libraries"] = versions()
    found["pools"] = pools()
    pace.rest()
    if want == "holders":
        found.update(_holders(request, pace))
    return found


def _roles(request: dict[str, Any]) -> dict[str, str]:
    """What the one who asks says of classes: `package.Class` to what it is in a training."""
    told = request.get("roles")
    if not isinstance(told, dict):
        return {}
    return {str(name): str(role) for name, role in told.items()}


def _holders(request: dict[str, Any], pace: Pace) -> dict[str, Any]:
    from .holders import array_rows, python_rows  # noqa: TID252
    from .walk_phases import WholeWalk  # noqa: TID252

    before = _resident()
    sweep = WholeWalk(pace, _roles(request))
    try:
        sweep.run()
        found: dict[str, Any] = {"arrays": array_rows(sweep), "python": python_rows(sweep)}
        found["duplicates"] = []
        if request.get("duplicates"):
            from .duplicates import duplicates  # noqa: TID252

            seconds = min(_MOST_SECONDS, float(request.get("seconds", _SECONDS)))
            found["duplicates"] = duplicates(sweep.blocks, pace, seconds=seconds)
        objects, complete = sweep.objects, sweep.complete
    finally:
        sweep.forget()
        del sweep
    found["walk"] = {
        **pace.report(),
        "objects": objects,
        "complete": complete,
        "added_bytes": max(0, _resident() - before),
    }
    return found


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
