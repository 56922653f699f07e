"""Whose failure an exception is, and how the target's own author would see it."""

from __future__ import annotations

import sys
import sysconfig
import textwrap
import traceback
from collections.abc import Iterator
from pathlib import Path

_MEMFIT = Path(__file__).resolve().parents[1]
_OURS = tuple(str(_MEMFIT / part) for part in ("child.py", "sources", "measure"))
_RUNPY = ("<frozen runpy>", "runpy.py")
_LIBRARIES = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
# The libraries that memfit's extras bring.
_EXTRAS = {
    "cloudpickle": "torch",
    "gymnasium": "sb3",
    "sb3_contrib": "sb3",
    "stable_baselines3": "sb3",
    "torch": "torch",
}


def own_traceback(error: BaseException) -> str:
    """The traceback without the frames of memfit and of what runs the target."""
    shown = traceback.TracebackException.from_exception(error)
    for part in _chain(shown):
        part.stack[:] = [frame for frame in part.stack if not _is_ours(frame.filename)]
    return "".join(shown.format())


def is_targets(error: BaseException) -> bool:
    """Whether the target's own code was at work when a survey of it failed."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    last = max((i for i, file in enumerate(files) if _is_ours(file)), default=-1)
    return any(not _is_library(file) for file in files[last + 1 :])


def passed_through(error: BaseException, file: str) -> bool:
    """Whether a function of this file of memfit's sources had called what failed."""
    wanted = str(_MEMFIT / "sources" / file)
    return any(frame.filename == wanted for frame in traceback.extract_tb(error.__traceback__))


def one_line(error: BaseException) -> str:
    """What an exception says, as a part of a message."""
    return textwrap.shorten(f"{type(error).__name__}: {error}", 300).rstrip(".")


def missing_extra(error: BaseException) -> tuple[str, str] | None:
    """The library that could not be imported and the extra that brings it, if one does."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    library = error.name.partition(".")[0]
    if library not in _EXTRAS or library in sys.modules:
        return None
    return library, _EXTRAS[library]


def _chain(shown: traceback.TracebackException) -> Iterator[traceback.TracebackException]:
    yield shown
    for other in (shown.__cause__, shown.__context__, *(shown.exceptions or ())):
        if other is not None:
            yield from _chain(other)


def _is_ours(file: str) -> bool:
    return file.startswith((*_OURS, "<frozen importlib")) or file.endswith(_RUNPY)


def _is_library(file: str) -> bool:
    return file.startswith((*_LIBRARIES, "<frozen"))
