"""When a run is warned of: first as soon as it can be told, then as the forecast firms up."""

from __future__ import annotations

from memfit.model import Forecast, Growth, Limit
from memfit.units import format_bytes, shortened

_NEAR = 0.9  # of the limit
_FALLS = 0.8  # of what it held at the look before
_SOONER = 0.5  # of the time that was left at the last warning
_NARROWER = 0.5  # of the width that the interval had
_NAME = 60  # characters of a process's name
_MORE = 2.0  # times what had leaked at the last warning, where there is no limit


class GrowthWarnings:
    """Says each thing once, and again when much less time is left or it is known much better."""

    def __init__(self, limit: Limit | None) -> None:
        self.limit = limit
        self._near = False
        self._left = self._width = float("inf")
        self._grown = 0
        self._leaks = False
        self._amount = 0

    def text(self, amount: int, seconds: float, found: Forecast) -> str:
        """What to say now; empty where nothing is new."""
        before, self._amount = self._amount, amount
        if amount < _FALLS * before:  # it ends, or lets go of much: what is forecast is of before
            return ""
        if self.limit is None:
            return self._without_limit(found)
        near = amount >= _NEAR * self.limit.bytes
        if not (near and not self._near) and not self._firmer(seconds, found):
            return ""
        self._near |= near
        text = f"{format_bytes(amount)} of {format_bytes(self.limit.bytes)}"
        if found.growth.at_one_pace or found.growth is Growth.FILLING:
            text += f", {growth_text(found)}"
        if found.reaches_limit_at is not None and found.low is not None:
            text += f": the limit is reached in about {_left(found.reaches_limit_at, seconds)} s"
            text += found.condition
            late = "never" if found.high is None else f"{_left(found.high, seconds)} s"
            text += f" ({_left(found.low, seconds)} s to {late}, in 90 of 100 cases)"
        return text

    def _firmer(self, seconds: float, found: Forecast) -> bool:
        """Whether the limit is forecast, and much sooner or more exactly than was said last."""
        if found.reaches_limit_at is None or found.low is None:
            return False
        left = max(0.0, found.reaches_limit_at - seconds)
        width = float("inf") if found.high is None else (found.high - found.low) / max(left, 1.0)
        if left > _SOONER * self._left and width > _NARROWER * self._width:
            return False
        if left <= 0 and self._left <= 0:
            return False
        self._left, self._width = left, min(width, self._width)
        return True

    def _without_limit(self, found: Forecast) -> str:
        firmer = found.growth is Growth.LEAKING and not self._leaks
        more = found.grown_bytes >= _MORE * self._grown
        if not found.growth.at_one_pace or not (firmer or more):
            return ""
        self._leaks |= firmer
        self._grown = found.grown_bytes
        return growth_text(found)


def growth_text(found: Forecast) -> str:
    """By how much it grows, since when, and in which processes."""
    text = f"{found.growth.value} by {format_bytes(round(found.bytes_per_second))}/s"
    text += ", slowing down," if found.slowing else ""
    if found.since is not None:
        text += f" since {found.since:.0f} s"
    members = ", ".join(shortened(member, _NAME) for member in found.members)
    return text + (f", in {members}" if members else "")


def _left(at: float, seconds: float) -> str:
    return f"{max(0.0, at - seconds):.0f}"
