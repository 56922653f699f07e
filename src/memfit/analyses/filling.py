"""How far blocks were filled between two looks at them, which are seconds apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from memfit.model import Reading

_FIRST_SECONDS = 10.0  # for which a block was filled, at the most, before it was seen to be


def filled_between(readings: Sequence[Reading]) -> list[float]:
    """What was filled at each reading: at an even pace from look to look, and on after the last.

    A look is a reading at which the amount changes. Nothing goes on beyond the room that is left.
    """
    looks = [(readings[0].seconds, float(readings[0].filling))]
    for before, after in pairwise(readings):
        if after.filling != before.filling:
            if len(looks) == 1:
                began = max(looks[0][0], after.seconds - _FIRST_SECONDS)
                looks.append((began, looks[0][1]))
            looks.append((after.seconds, float(after.filling)))
    if len(looks) > 1:
        looks.append(_next(looks, readings[-1]))
    found, at = [], 0
    for reading in readings:
        while at + 2 < len(looks) and looks[at + 1][0] <= reading.seconds:
            at += 1
        found.append(_between(looks[at : at + 2], reading.seconds))
    return found


def _next(looks: Sequence[tuple[float, float]], last: Reading) -> tuple[float, float]:
    """Where the last two looks lead to by now, no further in time than they are apart."""
    (first, low), (second, high) = looks[-2:]
    pace = max(0.0, high - low) / max(second - first, 1e-9)
    ahead = min(last.seconds - second, second - first)
    return max(last.seconds, second), high + min(last.room, pace * ahead)


def _between(ends: Sequence[tuple[float, float]], seconds: float) -> float:
    if len(ends) == 1:
        return ends[0][1]
    (first, low), (second, high) = ends
    share = (seconds - first) / (second - first) if second > first else 1.0
    return low + (high - low) * min(1.0, max(0.0, share))
