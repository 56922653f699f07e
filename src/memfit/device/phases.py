"""In which phase of a training a block was asked for: by what was recorded beside it, where it was.

Named stretches of the program (`record_function`, optimizer steps) say it best, then the calls.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from memfit.model.device_snapshot import Annotation, Stack, StackFrame

BEFORE, UNKNOWN, ELSEWHERE = "before the history", "not recorded", "elsewhere"
OPTIMIZER, BACKWARD, FORWARD = "optimizer", "backward", "forward"

_TORCH = ("/torch/", "torch/csrc/", "torch/_", "<frozen", "<string>", "??")


class PhaseTimes:
    """The innermost named stretch at a time."""

    def __init__(self, annotations: Iterable[Annotation]) -> None:
        self._times: list[int] = []
        self._names: list[str] = []
        within: list[str] = []
        for mark in annotations:
            if mark.begins:
                within.append(_phase_of(mark.name))
            elif _phase_of(mark.name) in within:
                within.reverse()
                within.remove(_phase_of(mark.name))
                within.reverse()
            self._times.append(mark.time)
            self._names.append(within[-1] if within else "")

    def at(self, time: int) -> str:
        """Empty where nothing is named."""
        place = bisect_right(self._times, time) - 1
        return self._names[place] if time and place >= 0 else ""


def _phase_of(name: str) -> str:
    if name.startswith("Optimizer."):
        return OPTIMIZER
    return name.strip("# ") or ELSEWHERE


def phase_of_stack(stack: Stack) -> str:
    """The phase that the calls tell."""
    if not stack:
        return UNKNOWN
    if any("torch/optim/" in call.file for call in stack):
        return OPTIMIZER
    for call in stack:
        if call.function.startswith("torch::autograd::Engine"):
            return BACKWARD
        if call.function in ("backward", "_engine_run_backward") and _is_torch(call):
            return BACKWARD
    if any(call.function == "forward" or "torch/nn/" in call.file for call in stack):
        return FORWARD
    return ELSEWHERE


def place_of_stack(stack: Stack) -> str:
    """Where in the program: the innermost call of its own, and what of torch it called."""
    own = next((call for call in stack if not _is_torch(call)), None)
    # C++ has no lines in most builds.
    within = stack[: stack.index(own)] if own is not None else stack
    torch = next(
        (call for call in reversed(within) if call.line and call.file.endswith(".py")), None
    )
    if own is None:
        shown = torch or next(iter(stack), None)
        return UNKNOWN if shown is None else _written(shown)
    return _written(own) if torch is None else f"{_written(own)} > {_written(torch)}"


def _is_torch(call: StackFrame) -> bool:
    return not call.file.endswith(".py") or any(part in call.file for part in _TORCH)


def _written(call: StackFrame) -> str:
    short = "/".join(call.file.split("/")[-2:])
    return f"{short}:{call.line} {call.function}" if call.line else call.function
