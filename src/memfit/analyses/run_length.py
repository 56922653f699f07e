"""After how many env steps a run ends, from the loops that it is in."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from memfit.model.trial import LoopBound, RunLength

_CLOSE = 0.25  # of it: a counter that is as near is one of env steps
_SAME = 0.02  # a whole number of steps in each turn


def run_length(
    loops: Sequence[Sequence[LoopBound]], *, steps: int, at_once: int, updating: bool
) -> RunLength | None:
    """The length of a run that has made so many env steps, `at_once` so many; None if unknown.

    The outermost loop that has an end decides; where there are several conditions, the first to
    come true. While the run is `updating`, what a turn collects is collected.
    """
    at = next((i for i, bounds in enumerate(loops) if bounds), None)
    if at is None or not steps:
        return None
    inner = loops[at + 1 :]
    found = [
        one
        for bound in loops[at]
        if (one := _by_turns(bound, inner, steps, at_once, updating)) is not None
    ]
    return min(found, key=lambda one: one.steps, default=None)


def _by_turns(
    bound: LoopBound, inner: Sequence[Sequence[LoopBound]], steps: int, at_once: int, updating: bool
) -> RunLength | None:
    if not bound.counts:
        return _by_counter(bound, steps, at_once)
    counted = [next((b for b in bounds if b.counts), None) for bounds in inner]
    if updating:
        counted = []
    turn = prod(b.total for b in counted if b is not None) * at_once
    if not updating and None not in counted:
        done = (_turns_done([bound, *(b for b in counted if b is not None)]) + 1) * at_once
        if done <= steps:
            times = round(steps / done)
            if times > 1 and abs(steps / done - times) <= _SAME * times:  # steps of each turn
                return RunLength(steps=times * bound.total * turn, where=bound.line, exact=True)
            # Each innermost turn is a step; others came before the loop.
            return RunLength(steps=steps - done + bound.total * turn, where=bound.line, exact=True)
    if updating:
        return _scaled(bound, steps, bound.done + 1)
    return _scaled(bound, steps, bound.done) if bound.done else None


def _scaled(bound: LoopBound, steps: int, turns: int) -> RunLength:
    total = steps * bound.total // turns
    return RunLength(steps=max(steps, total), where=bound.line, exact=False)


def _turns_done(bounds: Sequence[LoopBound]) -> int:
    """The innermost turns that are done."""
    done = 0
    for bound in bounds:
        done = done * bound.total + bound.done
    return done


def _by_counter(bound: LoopBound, steps: int, at_once: int) -> RunLength:
    """A counter of env steps, or of steps of all envs at once, or of anything else."""
    for each in (1, at_once):
        if abs(bound.done * each - steps) <= max(_CLOSE * steps, each):
            left = (bound.total - bound.done) * each
            return RunLength(steps=steps + left, where=bound.line, exact=True)
    return _scaled(bound, steps, bound.done)
