"""Turns an exception of the target into an answer: whose failure it is, and its traceback."""

from __future__ import annotations

import sys
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memfit.errors import Unsupported
from memfit.libraries import extra_of
from memfit.model.job import Answer, Status

_MEMFIT = Path(__file__).resolve().parents[1]
_OURS = tuple(str(_MEMFIT / part) for part in ("child", "libraries", "measure"))
_RUNPY = ("<frozen runpy>", "runpy.py")
_LIBRARIES = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)


def answer_to(error: BaseException, *, surveying: bool = False) -> Answer:
    """The answer for an exception: whose failure it is, and what its author should see."""
    if isinstance(error, Unsupported):
        return Answer(status=Status.UNSUPPORTED, reason=str(error))
    if surveying and not is_targets(error):
        return Answer(status=Status.SURVEY_FAILED, output=traceback.format_exc())
    if (missing := missing_extra(error)) is not None:
        return Answer(status=Status.MISSING_EXTRA, library=missing[0], extra=missing[1])
    return Answer(status=Status.TARGET_FAILED, output=own_traceback(error))


def answer_to_exit(code: Any) -> Answer:
    """The answer for a target that called `sys.exit`."""
    if code in (None, 0):
        return Answer(status=Status.NEVER_LEARNED)
    said = f"it ended with exit code {code}" if isinstance(code, int) else str(code)
    return Answer(status=Status.TARGET_FAILED, output=said)


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


def missing_extra(error: BaseException) -> tuple[str, str] | None:
    """The library that could not be imported and the extra that brings it, if one does."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    package = error.name.partition(".")[0]
    extra = extra_of(package)
    return (package, extra) if extra and package not in sys.modules else None


def _chain(shown: traceback.TracebackException) -> Iterator[traceback.TracebackException]:
    yield shown
    for other in (shown.__cause__, shown.__context__, *(shown.exceptions or ())):
        if other is not None:
            yield from _chain(other)


def _is_ours(file: str) -> bool:
    return file.startswith((*_OURS, "<frozen importlib")) or file.endswith(_RUNPY)


def _is_library(file: str) -> bool:
    return file.startswith((*_LIBRARIES, "<frozen"))
