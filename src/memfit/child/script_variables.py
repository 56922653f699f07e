"""The variables of a running script: its module's, and those of the functions that it is in."""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType
from typing import Any

from memfit.inside.local_variables import is_memfits, local_variables


def script_variables(frame: FrameType | None, script: str) -> Iterator[tuple[str, Any]]:
    """Names and values, those of the innermost function first."""
    while frame is not None:
        if not is_memfits(frame):
            yield from local_variables(frame)
        if frame.f_code.co_filename == script and frame.f_code.co_name == "<module>":
            yield from list(frame.f_globals.items())
        frame = frame.f_back


def attributes(thing: Any) -> dict[str, Any]:
    """What an instance has by itself; looked up without calling any code of its own."""
    try:
        found = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        return {}
    return found if isinstance(found, dict) else {}
