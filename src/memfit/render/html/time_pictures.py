"""The timeline of a recording: by component and by process, with phases, limit and forecast."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from memfit.model import at_fewer_times, fewer_points, lasting_name
from memfit.render.blocks import Table, names, numbers
from memfit.render.html.figure import (
    Data,
    Picture,
    Trace,
    byte_axis,
    is_near,
    label,
    legend_below,
    limit_line,
    line,
    plain,
    reach,
    time_axis,
)
from memfit.render.html.ledger_pictures import kind_words, rows_table
from memfit.render.html.palette import BAD, INK, PHASES, kind_colour, series_colour
from memfit.units import format_bytes

_MOST_POINTS = 2000  # drawn of a curve
_MOST_STACKED = 400  # of each of the processes
_MOST_NUMBERS = 300  # rows of its table
_MOST_MEMBERS = 40
_MOST_OF_EACH = 30  # rows of the table of processes
_MOST_PHASES = 4000
_UNKNOWN_PHASES = ("#b48ae6", "#72cbb9", "#d8483e", "#7db3f2", "#a8bd3a")
_BELOW, _STRIP = 0.94, 0.965  # of the height: where memory ends, and where the strip begins
_HIDDEN = {"visible": False, "fixedrange": True}
Curve = Sequence[Sequence[Any]]


def timeline(data: Data) -> Iterator[Picture]:
    """Memory over time."""
    readings: Curve = data.get("readings") or ()
    if not _is_curve(readings):
        return
    curve = fewer_points(readings, _MOST_POINTS, lambda reading: reading[1])
    last, highest = curve[-1][0], max(amount for _, amount in curve)
    limit = data.get("limit_bytes")
    whole = line(
        "memory of the run",
        INK,
        x=[seconds for seconds, _ in curve],
        y=[amount for _, amount in curve],
        text=[f"{seconds:.1f} s: <b>{format_bytes(amount)}</b>" for seconds, amount in curve],
        mode="lines" if len(curve) > 1 else "markers",  # one reading makes no line
    )
    by_component, by_process = list(_components(data)), list(_processes(data))
    bands = list(_phases(data, last))
    ahead, until = _forecast(data, curve[-1], limit)
    traces = [*bands, *by_component, *by_process, whole, *ahead]
    layers = {}
    if by_component and by_process:
        first, second = len(bands), len(bands) + len(by_component)
        layers = {
            "by component": range(first, second),
            "by process": range(second, second + len(by_process)),
        }
    yield Picture(
        key="timeline",
        title="Memory over time",
        note=_note(by_component, bands, ahead),
        traces=traces,
        layout={
            "xaxis": time_axis(until, range=[0, max(until, 0.1)]),
            "yaxis": byte_axis(reach(limit, highest), domain=[0, _BELOW if bands else 1]),
            "yaxis2": {"domain": [_STRIP, 1], "anchor": "x", "range": [0, 1], **_HIDDEN},
            "legend": legend_below(),
            "hovermode": "closest",
            **limit_line(limit, highest, upright=False),
        },
        height=460,
        leads=True,
        layers=layers,
        table=rows_table(
            numbers("seconds", "memory", "bytes"),
            [
                (f"{seconds:.1f}", format_bytes(amount), f"{amount:,}")
                for seconds, amount in fewer_points(readings, _MOST_NUMBERS, lambda r: r[1])
            ],
        ),
        more_tables=list(_process_numbers(data)) if by_process else (),
    )


def _is_curve(readings: Curve) -> bool:
    return bool(readings) and isinstance(readings[0], list)


def _note(by_component: Sequence[Trace], bands: Sequence[Trace], ahead: Sequence[Trace]) -> str:
    parts = ["The line is the memory of all processes of the run, shared pages counted once."]
    if by_component:
        parts.append(
            "Below it, what its rows held each time they were read; what is between them and the "
            "line came or went since. Choose a point to see what it consists of."
        )
    if bands:
        parts.append("The strip above says in which phase the run was.")
    if ahead:
        parts.append("The dotted line is the forecast.")
    return " ".join(parts)


def _components(data: Data) -> Iterator[Trace]:
    """A layer for each row, in the colour of its kind; the legend names kinds."""
    moments = data.get("rows_over_time") or []
    if len(moments) < 2:
        return
    times = [at["seconds"] for at in moments]
    kinds: dict[tuple[str, str], dict[float, int]] = {}
    for at in moments:
        for row in at["components"]:
            held = kinds.setdefault((row["kind"], lasting_name(row["name"])), {})
            held[at["seconds"]] = held.get(at["seconds"], 0) + row["bytes"]
    named: set[str] = set()
    for (kind, name), held in sorted(kinds.items()):
        amounts = [held.get(seconds, 0) for seconds in times]
        yield line(
            kind_words(kind),
            kind_colour(kind),
            x=times,
            y=amounts,
            text=[
                f"{seconds:.1f} s: {plain(name)}<br><b>{format_bytes(n)}</b>"
                for seconds, n in zip(times, amounts, strict=True)
            ],
            **_layer(kind_colour(kind), "components"),
            legendgroup=kind,
            showlegend=kind not in named,
        )
        named.add(kind)


def _layer(colour: str, group: str) -> dict[str, Any]:
    return {
        "stackgroup": group,
        "fillcolor": colour,
        "hoveron": "points+fills",
        "line": {"color": "@paper", "width": 0.4},
    }


def _processes(data: Data) -> Iterator[Trace]:
    """A layer for each process, where there are several."""
    members = data.get("members") or []
    if len(members) < 2:
        return
    largest = sorted(members, key=lambda m: -max((r[1] for r in m["readings"]), default=0))
    drawn = largest[:_MOST_MEMBERS]
    curves = at_fewer_times([member["readings"] for member in drawn], _MOST_STACKED)
    for number, (member, curve) in enumerate(zip(drawn, curves, strict=True)):
        name = f"{member['pid']} {member['name']}"
        yield line(
            "",
            series_colour(number),
            x=[seconds for seconds, _ in curve],
            y=[amount for _, amount in curve],
            text=[
                f"{seconds:.1f} s: {label(name)}<br><b>{format_bytes(n)}</b>"
                for seconds, n in curve
            ],
            **_layer(series_colour(number), "processes"),
            stackgaps="infer zero",
            visible=False,
        ) | {"name": label(name)}


def _process_numbers(data: Data) -> Iterator[Table]:
    rows = [
        (f"{member['pid']} {member['name']}", f"{seconds:.1f}", format_bytes(amount))
        for member in data["members"][:_MOST_MEMBERS]
        for seconds, amount in fewer_points(member["readings"], _MOST_OF_EACH, lambda r: r[1])
    ]
    yield rows_table((names("process"), *numbers("seconds", "memory")), rows)


def _phases(data: Data, last: float) -> Iterator[Trace]:
    """A strip for each phase that the run told, along the whole time."""
    told = [e for e in data.get("events", ()) if e.get("kind") == "phase"][-_MOST_PHASES:]
    ends = [event["seconds"] for event in told[1:]] + [last]
    spans: dict[str, list[tuple[float, float]]] = {}
    for event, end in zip(told, ends, strict=False):
        spans.setdefault(event["text"], []).append((event["seconds"], end))
    for number, (phase, parts) in enumerate(spans.items()):
        colour = PHASES.get(phase, _UNKNOWN_PHASES[number % len(_UNKNOWN_PHASES)])
        corners = [(a, a, b, b, a, None) for a, b in parts]
        yield {
            "type": "scatter",
            "mode": "lines",
            "fill": "toself",
            "yaxis": "y2",
            "name": f"in {plain(phase)}",
            "x": [x for part in corners for x in part],
            "y": [y for _ in corners for y in (0, 1, 1, 0, 0, None)],
            "fillcolor": colour,
            "line": {"color": colour, "width": 0},
            "hoveron": "fills",
            "hoverinfo": "name",
            "legendrank": 2000,
        }


def _forecast(data: Data, last: Sequence[Any], limit: int | None) -> tuple[list[Trace], float]:
    """How it goes on up to the limit, and how far the axis of time then goes."""
    told = data.get("forecast") or {}
    at, low, high = (told.get(key) for key in ("reaches_limit_at", "low", "high"))
    if (
        at is None
        or limit is None
        or not is_near(limit, last[1])
        or not last[0] < at <= 4 * last[0]
    ):
        return [], last[0]
    late = at if high is None else high
    words = f"reaches the limit at about {at:.0f} s"
    if low is not None:
        words += f" ({low:.0f} s to {'never' if high is None else f'{high:.0f} s'})"
    dotted = {"color": BAD, "width": 2, "dash": "dot"}
    ahead = line("forecast", BAD, x=[last[0], at], y=[last[1], limit], text=[words, words])
    ahead["line"] = dotted
    between = line(
        "when, in 90 of 100 cases", BAD, x=[low or at, late], y=[limit, limit], text=[words, words]
    )
    between["line"] = {"color": BAD, "width": 7}
    return [ahead, between], max(late, at) if late <= 6 * last[0] else at
