"""Turns of a script's own loops: the outermost that is at work, and whether there is one."""

from __future__ import annotations

import dis
import functools
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from memfit.inside.local_variables import is_memfits, local_variables

_LIBRARIES = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)


@dataclass(frozen=True, kw_only=True)
class _Loop:
    """A loop's first and last instruction, and the variable that `for` gives its elements to."""

    first: int
    last: int
    variable: str


class OuterLoop:
    """Notices when the outermost loop of the script goes on to its next element."""

    def __init__(self) -> None:
        self._at: tuple[CodeType, int, int] | None = None

    def turned(self) -> bool | None:
        """Whether it went on since the last call; None where no loop over elements is at work."""
        for frame, loop in loops_at_work():
            if loop.variable:
                at = frame.f_code, loop.first, _element(frame, loop.variable)
                before, self._at = self._at, at
                return before is not None and before != at
        return None


def in_a_loop() -> bool:
    """Whether the script is in a loop of its own now."""
    return next(loops_at_work(), None) is not None


def loops_at_work() -> Iterator[tuple[FrameType, _Loop]]:
    """The loops that the caller is in, of the script's own code, the outermost first."""
    own: list[FrameType] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        of_library = frame.f_code.co_filename.startswith((*_LIBRARIES, "<frozen"))
        if not of_library and not is_memfits(frame):
            own.append(frame)
        frame = frame.f_back
    for caller in reversed(own):
        for loop in _loops(caller.f_code):
            if loop.first <= caller.f_lasti <= loop.last:
                yield caller, loop


@functools.lru_cache(maxsize=256)
def _loops(code: CodeType) -> tuple[_Loop, ...]:
    """The loops of a function or module, outer ones before inner ones."""
    last: dict[int, int] = {}
    variables: dict[int, str] = {}
    head = wide = -1
    for step in dis.get_instructions(code):
        if step.opname == "EXTENDED_ARG":  # of the next one, which a jump goes to through this
            wide = step.offset if wide < 0 else wide
            continue
        begins, wide = step.offset if wide < 0 else wide, -1
        if step.opname == "FOR_ITER":
            head = begins
        elif head >= 0 and step.opname.startswith("STORE_"):
            variables[head], head = _stored(step), -1
        elif head >= 0 and step.opname not in ("UNPACK_SEQUENCE", "CACHE"):
            head = -1
        if "JUMP_BACKWARD" in step.opname and isinstance(step.argval, int):
            last[step.argval] = max(last.get(step.argval, 0), step.offset)
    found = (_Loop(first=f, last=e, variable=variables.get(f, "")) for f, e in last.items())
    return tuple(sorted(found, key=lambda loop: (loop.first, -loop.last)))


def _stored(step: dis.Instruction) -> str:
    """The variable that an instruction gives a value to; "" where it is an item or an attribute."""
    if step.opname in ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF"):
        return str(step.argval)
    both = step.opname.startswith("STORE_FAST_")  # from Python 3.13 on, two at once
    return str(step.argval[0]) if both else ""


def _element(frame: FrameType, variable: str) -> int:
    """A number by which the loop's element is told from the one before."""
    value: Any = None
    if frame.f_code.co_name == "<module>":
        value = frame.f_globals.get(variable)
    else:
        value = next((v for name, v in local_variables(frame) if name == variable), None)
    return value if type(value) is int else id(value)
