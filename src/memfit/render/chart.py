"""Memory over time as lines of text, with a scale and the limit."""

from __future__ import annotations

from collections.abc import Sequence

from memfit.model import Reading
from memfit.units import format_bytes

_PARTS = " ▁▂▃▄▅▆▇█"
_LIMIT = "┄"
_NEAR = 2.0  # times the highest: a limit beyond is not drawn, else nothing else could be seen


def chart(readings: Sequence[Reading], width: int, height: int, limit: int) -> list[str]:
    """The highest of each moment as columns, the limit where it is near, and both axes."""
    if not readings or width < 1 or height < 1:
        return []
    highest = max(reading.bytes for reading in readings) or 1
    near = limit_is_near(limit, highest)
    top = max(highest, limit) if near else highest
    labels = {0: format_bytes(top), height - 1: "0"}
    limit_row = min(height - 1, int((1 - limit / top) * height)) if near else -1
    if near:
        labels[limit_row] = f"limit {format_bytes(limit)}"
    wide = max(map(len, labels.values()))
    room = max(1, width - wide - 2)
    highs = _columns(readings, room)
    lines = []
    for row in range(height):
        below = top * (height - 1 - row) / height  # what fills all rows below this one
        marks = []
        for high in highs:
            share = (high - below) / (top / height)
            mark = _PARTS[max(0, min(8, int(share * 8 + 0.999)))]
            marks.append(_LIMIT if mark == " " and row == limit_row else mark)
        lines.append(f"{labels.get(row, ''):>{wide}} ┤{''.join(marks)}".rstrip())
    first, last = (f"{readings[at].seconds:.0f} s" for at in (0, -1))
    gap = max(1, room - len(first) - len(last))
    return [*lines, f"{'':{wide}}  {first}{' ' * gap}{last}"]


def curve(readings: Sequence[Reading], most: int) -> list[Reading]:
    """At most so many readings that show the same curve: the highest of each moment, and the last.

    Nothing that was high is lost between two of them.
    """
    if len(readings) <= most:
        return list(readings)
    first, last = readings[0].seconds, readings[-1].seconds
    span = max(last - first, 1e-9)
    highs: dict[int, Reading] = {}
    for reading in readings:
        at = int((reading.seconds - first) / span * (most - 2))
        if at not in highs or reading.bytes > highs[at].bytes:
            highs[at] = reading
    points = list(highs.values())
    return points if points[-1] is readings[-1] else [*points, readings[-1]]


def limit_is_near(limit: int, highest: int) -> bool:
    """Whether a limit is drawn: beyond, nothing else could be seen."""
    return limit <= _NEAR * highest


def _columns(readings: Sequence[Reading], width: int) -> list[int]:
    """The highest reading of each column; one without a reading is as the one before."""
    first, last = readings[0].seconds, readings[-1].seconds
    span = max(last - first, 1e-9)
    highs = [0] * width
    for reading in readings:
        at = min(width - 1, int((reading.seconds - first) / span * width))
        highs[at] = max(highs[at], reading.bytes)
    for i in range(1, width):
        highs[i] = highs[i] or highs[i - 1]
    return highs
