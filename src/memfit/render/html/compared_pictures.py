"""Two runs on one axis, and the gap between them row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from memfit.model import fewer_points
from memfit.render.blocks import names, numbers
from memfit.render.html.figure import (
    Data,
    Picture,
    Trace,
    bar,
    byte_axis,
    change_axis,
    label,
    legend_below,
    line,
    lying,
    names_axis,
    plain,
    rows_axis,
    time_axis,
)
from memfit.render.html.ledger_pictures import rows_table
from memfit.render.html.palette import BAD, GOOD, series_colour
from memfit.units import format_bytes, format_change

_MOST_POINTS, _MOST_NUMBERS, _MOST_ROWS = 2000, 150, 25
_SIDES = ("before", "after")


def courses(data: Data) -> Iterator[Picture]:
    """Both runs over time, a plan as the line of its peak; two plans by phase."""
    if "before_course" not in data:
        return
    sides = [
        (str(data[side]), data[f"{side}_bytes"], data[f"{side}_course"], series_colour(number))
        for number, side in enumerate(_SIDES)
    ]
    curves = [(name, course["readings"]) for name, _, course, _ in sides if course["readings"]]
    if curves:
        yield _over_time(sides, curves)
    elif any(course["phases"] for _, _, course, _ in sides):
        yield _by_phase(sides)


def _over_time(sides: Sequence[Any], curves: Sequence[tuple[str, Any]]) -> Picture:
    last = max(reading[0] for _, readings in curves for reading in readings)
    traces: list[Trace] = []
    for name, peak, course, colour in sides:
        if readings := fewer_points(course["readings"], _MOST_POINTS, lambda reading: reading[1]):
            xs, ys = [r[0] for r in readings], [r[1] for r in readings]
            told = [f"{label(name)}, {s:.1f} s: <b>{format_bytes(n)}</b>" for s, n in readings]
            traces.append(line("", colour, x=xs, y=ys, text=told) | {"name": label(name)})
        else:
            told = [f"{label(name)}: predicted peak <b>{format_bytes(peak)}</b>"] * 2
            flat = line("", colour, x=[0, last], y=[peak, peak], text=told)
            flat["line"] = {"color": colour, "width": 3, "dash": "dash"}
            traces.append(flat | {"name": f"predicted peak, {label(name)}"})
    rows = [
        (name, f"{seconds:.1f}", format_bytes(amount))
        for name, readings in curves
        for seconds, amount in fewer_points(readings, _MOST_NUMBERS, lambda r: r[1])
    ]
    return Picture(
        key="courses",
        title="Both on one axis",
        note="Time runs from the start of each.",
        traces=traces,
        layout={
            "xaxis": time_axis(last, range=[0, max(last, 0.1)]),
            "yaxis": byte_axis(max(peak for _, peak, _, _ in sides)),
            "legend": legend_below(),
        },
        height=400,
        table=rows_table((names("run"), *numbers("seconds", "memory")), rows),
    )


def _by_phase(sides: Sequence[Any]) -> Picture:
    phases = list(dict.fromkeys(phase for _, _, course, _ in sides for phase in course["phases"]))
    traces = []
    for name, peak, course, colour in sides:
        there = course["phases"] or {"peak": peak}
        told = [f"{plain(p)}, {label(name)}: <b>{format_bytes(n)}</b>" for p, n in there.items()]
        traces.append(
            bar("", colour, y=[plain(p) for p in there], x=list(there.values()), customdata=told)
            | {"name": label(name)}
        )
    cells = [
        (phase, *(_size(course["phases"].get(phase)) for _, _, course, _ in sides))
        for phase in phases
    ]
    return Picture(
        key="courses",
        title="Both on one axis",
        note="The highest moment of each phase.",
        traces=traces,
        layout={
            "barmode": "group",
            "xaxis": byte_axis(max(peak for _, peak, _, _ in sides)),
            "yaxis": names_axis(),
            "legend": legend_below(),
        },
        height=lying(2 * len(phases)),
        table=rows_table(("phase", *numbers(*(name for name, _, _, _ in sides))), cells),
    )


def _size(amount: int | None) -> str:
    return "" if amount is None else format_bytes(amount)


def gap(data: Data) -> Iterator[Picture]:
    """Each row's change with its sign: what grew to the right, what shrank to the left."""
    rows = data.get("components")
    if "before_course" not in data or not rows:
        return
    shown = rows[:_MOST_ROWS]
    most = max(abs(row["bytes"]) for row in shown)
    traces = []
    for word, colour, part in (
        ("grew", BAD, [(at, row) for at, row in enumerate(shown) if row["bytes"] > 0]),
        ("shrank", GOOD, [(at, row) for at, row in enumerate(shown) if row["bytes"] < 0]),
    ):
        told = [
            f"{plain(r['name'])}<br><b>{format_change(r['bytes'])}</b><br>"
            f"{format_bytes(r['before_bytes'])} before, {format_bytes(r['after_bytes'])} after"
            for _, r in part
        ]
        ys, xs = [at for at, _ in part], [row["bytes"] for _, row in part]
        texts = [format_change(amount) for amount in xs]
        traces.append(
            bar(word, colour, y=ys, x=xs, customdata=told)
            | {"text": texts, "textposition": "outside", "cliponaxis": False, "width": 0.6}
        )
    rest = f" {len(rows) - len(shown):,} rows with smaller changes are not drawn." * (rows != shown)
    cells = [
        (
            r["name"],
            *map(format_bytes, (r["before_bytes"], r["after_bytes"])),
            format_change(r["bytes"]),
        )
        for r in rows
    ]
    total = (
        *("total", format_bytes(data["before_bytes"]), format_bytes(data["after_bytes"])),
        format_change(data["grew_bytes"]),
    )
    yield Picture(
        key="gap",
        title="The gap, row by row",
        note=f"What grew is on the right, what shrank on the left.{rest}",
        traces=[trace for trace in traces if trace["x"]],
        layout={
            "barmode": "overlay",
            "xaxis": change_axis(most),
            "yaxis": rows_axis([label(row["name"]) for row in shown]),
            "legend": legend_below(),
        },
        height=lying(len(shown)),
        table=rows_table(
            (names("component"), *numbers("before", "after", "change")), [*cells, total]
        ),
    )
