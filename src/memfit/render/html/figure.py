"""A picture: what plotly draws, in a sentence what it shows, and the numbers behind it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memfit.errors import visible_line
from memfit.render.blocks import Table
from memfit.render.html.palette import BAD, INK
from memfit.units import byte_ticks, format_bytes, format_change, shortened, time_ticks

Data = Mapping[str, Any]
Trace = dict[str, Any]
_NEAR = 2  # times the highest: a limit beyond is told in words, else nothing else could be seen
_FEW = 8  # whole numbers, each of which has its tick
_LABEL = 34  # characters of a name beside an axis
_ROUND = re.compile(r"\.0+(?= )")


@dataclass(frozen=True, kw_only=True)
class View:
    """One of several contents of a picture; `at` is the moment that chooses it."""

    key: str
    label: str
    trace: Trace
    at: float | None = None


@dataclass(frozen=True, kw_only=True)
class Picture:
    """One picture of a report.

    Of several `views` one is shown; a click on a picture that `leads` chooses it. `layers` are
    traces of which one group is shown at a time, by their numbers.
    """

    key: str
    title: str
    note: str
    table: Table
    more_tables: Sequence[Table] = ()
    traces: Sequence[Trace] = ()
    layout: Mapping[str, Any] = field(default_factory=dict)
    height: int = 360
    views: Sequence[View] = ()
    shown: str = ""
    leads: bool = False
    layers: Mapping[str, Sequence[int]] = field(default_factory=dict)


def plain(text: str) -> str:
    """Text that plotly shows as it is: it reads a part of HTML in every label."""
    return html.escape(visible_line(str(text)), quote=False)


def label(text: str) -> str:
    """A name beside an axis, not too long."""
    return plain(shortened(visible_line(str(text)), _LABEL))


def byte_axis(top: int, **more: Any) -> dict[str, Any]:
    """An axis of memory from nothing up to this."""
    ticks = byte_ticks(max(top, 1))
    words = [_ROUND.sub("", format_bytes(tick)) for tick in ticks]
    return {
        "tickvals": ticks,
        "ticktext": words,
        "range": [0, ticks[-1]],
        "fixedrange": True,
        "zeroline": False,
        "automargin": True,
        **more,
    }


def change_axis(most: int) -> dict[str, Any]:
    """An axis of changes in both directions, with room for words beside the bars."""
    top = byte_ticks(max(most, 1))[-1]
    ticks = (-top, 0, top)
    return {
        **byte_axis(top),
        "tickvals": ticks,
        "ticktext": [_ROUND.sub("", format_change(t)) for t in ticks],
        "range": [-1.3 * top, 1.3 * top],
        "zeroline": True,
    }


def time_axis(last: float, **more: Any) -> dict[str, Any]:
    """An axis of seconds."""
    ticks = time_ticks(last)
    return {
        "tickvals": [at for at, _ in ticks],
        "ticktext": [words for _, words in ticks],
        "zeroline": False,
        "showgrid": False,
        "automargin": True,
        **more,
    }


def whole_axis(top: float, **more: Any) -> dict[str, Any]:
    """An axis of whole numbers from nothing up to this."""
    ticks = {"dtick": 1} if top <= _FEW else {"tickformat": ",d"}
    return {**ticks, "rangemode": "tozero", "zeroline": False, "automargin": True, **more}


def names_axis(**more: Any) -> dict[str, Any]:
    """An axis of names, the first on top."""
    return {
        "type": "category",
        "autorange": "reversed",
        "fixedrange": True,
        "automargin": True,
        "showgrid": False,
        "ticks": "",
        **more,
    }


def rows_axis(labels: Sequence[str], **more: Any) -> dict[str, Any]:
    """An axis of rows by their number, the first on top: two may have the same name."""
    return {
        "tickvals": list(range(len(labels))),
        "ticktext": list(labels),
        "ticks": "",
        "range": [len(labels) - 0.5, -0.5],
        "fixedrange": True,
        "automargin": True,
        "showgrid": False,
        "zeroline": False,
        **more,
    }


def bar(name: str, colour: str, **more: Any) -> Trace:
    """Bars that lie, so that names are read beside them."""
    return {
        "type": "bar",
        "orientation": "h",
        "name": plain(name),
        "marker": {"color": colour, "line": {"color": "@paper", "width": 0.6}},
        "hovertemplate": "%{customdata}<extra></extra>",
        **more,
    }


def line(name: str, colour: str, **more: Any) -> Trace:
    """A curve."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": plain(name),
        "line": {"color": colour, "width": 2},
        "hovertemplate": "%{text}<extra></extra>",
        **more,
    }


def marks(name: str, colour: str, symbol: str, **more: Any) -> Trace:
    """Marks over other traces."""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": plain(name),
        "marker": {"color": colour, "symbol": symbol, "size": 11, "line": {"width": 2}},
        "hovertemplate": "%{text}<extra></extra>",
        "cliponaxis": False,
        **more,
    }


def is_near(limit: int | None, highest: int) -> bool:
    """Whether a limit is drawn."""
    return limit is not None and limit <= _NEAR * max(highest, 1)


def limit_line(limit: int | None, highest: int, *, upright: bool) -> dict[str, Any]:
    """A layout's shapes and words for a limit: a line where it is near, else a sentence."""
    if limit is None:
        return {}
    words: dict[str, Any] = {
        "text": f"limit {format_bytes(limit)}",
        "showarrow": False,
        "font": {"color": BAD, "size": 12},
    }
    if not is_near(limit, highest):
        far = {"xref": "paper", "yref": "paper", "x": 1, "y": 1, "xanchor": "right"}
        words |= {**far, "yanchor": "bottom", "text": f"{words['text']}, far beyond this picture"}
        return {"annotations": [words]}
    drawn: dict[str, Any] = {"type": "line", "line": {"color": BAD, "width": 2, "dash": "dash"}}
    if upright:
        drawn |= {"x0": limit, "x1": limit, "yref": "paper", "y0": 0, "y1": 1}
        words |= {"x": limit, "yref": "paper", "y": 1, "yanchor": "bottom"}
    else:
        drawn |= {"y0": limit, "y1": limit, "xref": "paper", "x0": 0, "x1": 1}
        words |= {"y": limit, "xref": "paper", "x": 0, "xanchor": "left", "yanchor": "bottom"}
    return {"shapes": [drawn], "annotations": [words]}


def reach(limit: int | None, *amounts: int) -> int:
    """How far an axis goes: to the highest of these, and to a limit that is near."""
    highest = max(amounts, default=0)
    return max(highest, limit) if limit is not None and is_near(limit, highest) else highest


def told(rows: Iterable[tuple[str, int]]) -> list[str]:
    """What is said of each of several amounts when it is pointed at."""
    return [f"{plain(name)}<br><b>{format_bytes(amount)}</b>" for name, amount in rows]


def lying(rows: int, *, legend: bool = True) -> int:
    """The height for so many bars that lie."""
    return 30 * max(rows, 2) + (150 if legend else 80)


def legend_below() -> dict[str, Any]:
    """A legend under the picture, where a phone has room for it."""
    return {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0}


def ink_line(**more: Any) -> dict[str, Any]:
    """A thin line in the colour of the text."""
    return {"color": INK, "width": 1.5, **more}
