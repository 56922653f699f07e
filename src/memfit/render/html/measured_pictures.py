"""Predicted drawn over measured; sweeps, capacity, finished jobs and what changes would save."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from memfit.errors import visible_line
from memfit.render.blocks import names, numbers
from memfit.render.html.figure import (
    Data,
    Picture,
    bar,
    byte_axis,
    is_near,
    label,
    legend_below,
    limit_line,
    line,
    lying,
    marks,
    plain,
    reach,
    rows_axis,
    told,
    whole_axis,
)
from memfit.render.html.ledger_pictures import rows_table
from memfit.render.html.palette import BAD, INK, series_colour
from memfit.units import format_bytes

_MEASURED, _PREDICTED = series_colour(0), INK
_MOST_ROWS = 30
_TWO = numbers("predicted", "measured")


def _pairs(
    key: str, title: str, note: str, rows: Sequence[tuple[str, int, int, int | None]]
) -> Picture:
    """Measured bars with a mark where the prediction is, and another where its upper bound is."""
    shown = rows[:_MOST_ROWS]
    at = list(range(len(shown)))
    predicted, measured = [row[1] for row in shown], [row[2] for row in shown]
    bounds = [(i, row[3]) for i, row in enumerate(shown) if row[3] is not None]
    said = [
        f"{plain(name)}<br>predicted <b>{format_bytes(p)}</b><br>measured <b>{format_bytes(m)}</b>"
        for name, p, m, _ in shown
    ]
    traces = [
        bar("measured", _MEASURED, y=at, x=measured, customdata=said),
        marks("predicted", _PREDICTED, "diamond-open", y=at, x=predicted, text=said),
    ]
    if bounds:
        words = [f"at most {format_bytes(amount)}" for _, amount in bounds]
        ys, xs = [at for at, _ in bounds], [amount for _, amount in bounds]
        traces.append(marks("upper bound", INK, "line-ns-open", y=ys, x=xs, text=words))
    top = max(*measured, *predicted, *(amount for _, amount in bounds))
    return Picture(
        key=key,
        title=title,
        note=note,
        traces=traces,
        layout={
            "xaxis": byte_axis(top),
            "yaxis": rows_axis([label(row[0]) for row in shown]),
            "legend": legend_below(),
        },
        height=lying(len(shown)),
        table=rows_table(
            (names("what"), *_TWO, *(numbers("at most") if bounds else ())),
            [
                (name, format_bytes(p), format_bytes(m), *([_size(u)] if bounds else []))
                for name, p, m, u in rows
            ],
        ),
    )


def beside(data: Data) -> Iterator[Picture]:
    """A demonstration: phases, then rows."""
    if data.get("kind") != "demo" or "peak" not in data:
        return
    for key, title, note in (
        ("phases", "Predicted over measured, by phase", "Bars were measured, marks predicted."),
        ("rows", "Row by row, in the training process", "The same for single components."),
    ):
        rows = [*data[key], *([data["peak"]] if key == "phases" else [])]
        if rows:
            pairs = [(r["name"], r["predicted_bytes"], r["measured_bytes"], None) for r in rows]
            yield _pairs(f"beside-{key}", title, note, pairs)


def systems(data: Data) -> Iterator[Picture]:
    """A reference system at each size."""
    if "runs" not in data or "system" not in data or not data["runs"]:
        return
    rows = [
        (
            f"{r['knob']} {r['value']:,}, {r['training']}",
            *(r["predicted_bytes"], r["measured_bytes"], r["upper_bytes"]),
        )
        for r in data["runs"]
    ]
    note = "Bars were measured, marks predicted before the run."
    yield _pairs("systems", "Predicted over measured, at each size", note, rows)


def sweep(data: Data) -> Iterator[Picture]:
    """Measured peaks over a setting, the line through them, and the plan."""
    points = data.get("points")
    if not points or "over" not in data:
        return
    knob, limit = plain(data["over"]), data["limit_bytes"]
    traces = []
    if data.get("line"):
        ends = data["line"]
        words = [f"line through the peaks, at {v:,}: <b>{format_bytes(n)}</b>" for v, n in ends]
        xs, ys = [value for value, _ in ends], [amount for _, amount in ends]
        traces.append(line("line through the peaks", _MEASURED, x=xs, y=ys, text=words))
    done = [(p["value"], p["peak_bytes"]) for p in points if p["outcome"] == "done"]
    other = [(p["value"], p["peak_bytes"], p["outcome"]) for p in points if p["outcome"] != "done"]
    planned = [(p["value"], p["planned_bytes"]) for p in points if p["planned_bytes"] is not None]
    for name, colour, symbol, found in (
        ("measured", _MEASURED, "circle", done),
        ("planned", _PREDICTED, "diamond-open", planned),
    ):
        words = [f"{knob} {v:,}, {name}: <b>{format_bytes(n)}</b>" for v, n in found]
        xs, ys = [v for v, _ in found], [n for _, n in found]
        traces.append(marks(name, colour, symbol, x=xs, y=ys, text=words))
    words = [f"{knob} {v:,}: {outcome}, at {format_bytes(n)}" for v, n, outcome in other]
    xs, ys = [v for v, _, _ in other], [n for _, n, _ in other]
    traces.append(marks("did not end well", BAD, "x", x=xs, y=ys, text=words))
    amounts = [n for _, n in [*done, *data.get("line", ())]] or [p["peak_bytes"] for p in points]
    highest = max(*amounts, *(n for _, n in planned if is_near(n, max(amounts))), 0)
    yield Picture(
        key="sweep",
        title=f"Peak over {visible_line(data['over'])}",
        note="Each point is a run of its own.",
        traces=[trace for trace in traces if trace["x"]],
        layout={
            "xaxis": whole_axis(
                max(p["value"] for p in points), title={"text": knob}, showgrid=False
            ),
            "yaxis": byte_axis(reach(limit, highest)),
            "legend": legend_below(),
            **limit_line(limit, highest, upright=False),
        },
        height=420,
        table=rows_table(
            (*numbers(data["over"], "measured", "planned"), "outcome"),
            [
                (
                    f"{p['value']:,}",
                    format_bytes(p["peak_bytes"]),
                    _size(p["planned_bytes"]),
                    p["outcome"],
                )
                for p in points
            ],
        ),
    )


def _size(amount: int | None) -> str:
    return "" if amount is None else format_bytes(amount)


def jobs(data: Data) -> Iterator[Picture]:
    """Finished jobs beside their plan."""
    found = [job for job in data.get("jobs", ()) if job.get("peak_bytes") is not None]
    if not found:
        return
    shown = sorted(found, key=lambda job: -job["peak_bytes"])[:_MOST_ROWS]
    rows = [(f"{job['job']} {job['name']}", job["peak_bytes"]) for job in shown]
    plan, upper = data["peak_bytes"], data["upper_bytes"]
    layout = limit_line(upper, max(upper, rows[0][1]), upright=True)
    layout["annotations"][0]["text"] = f"upper bound {format_bytes(upper)}"
    ends = {"x": [plan, plan], "y": [-0.5, len(rows) - 0.5]}
    words = [f"planned peak <b>{format_bytes(plan)}</b>"] * 2
    yield Picture(
        key="jobs",
        title="Predicted over measured, job by job",
        note="Bars are what Slurm measured; the line is the planned peak.",
        traces=[
            bar(
                "measured",
                _MEASURED,
                y=list(range(len(rows))),
                x=[n for _, n in rows],
                customdata=told(rows),
            ),
            line("planned peak", _PREDICTED, **ends, text=words),
        ],
        layout={
            "xaxis": byte_axis(max(upper, plan, rows[0][1])),
            "yaxis": rows_axis([label(name) for name, _ in rows]),
            "legend": legend_below(),
            **layout,
        },
        height=lying(len(rows)),
        table=rows_table(
            (names("job"), *numbers("peak")), [(name, format_bytes(n)) for name, n in rows]
        ),
    )


def capacity(data: Data) -> Iterator[Picture]:
    """What fits on which hardware: of a plan its peak there, of a sweep the largest value."""
    rows = data.get("capacity")
    if not rows:
        return
    yield _peaks_there(rows) if "peak_bytes" in rows[0] else _largest(data, rows)


def _peaks_there(rows: Sequence[dict[str, Any]]) -> Picture:
    at, hardware = list(range(len(rows))), [row["hardware"] for row in rows]
    room = [(f"{row['hardware']}: all its memory", row["bytes"]) for row in rows]
    need = [
        f"{plain(row['hardware'])}: needs <b>{format_bytes(row['peak_bytes'])}</b><br>"
        + "<br>".join(f"{plain(k)} up to {_value(v)}" for k, v in row["largest"].items())
        for row in rows
    ]
    shares = [f"{format_bytes(r['peak_bytes'])} of {format_bytes(r['bytes'])}" for r in rows]
    words = {"text": shares, "textposition": "auto", "insidetextanchor": "end", "width": 0.75}
    dark = {"insidetextfont": {"color": INK}, "outsidetextfont": {"color": INK}}
    traces = [
        bar("memory", "@soft", y=at, x=[n for _, n in room], customdata=told(room)) | words | dark
    ]
    for name, colour, fits in (("needed, and fits", _MEASURED, True), ("too much", BAD, False)):
        found = [i for i in at if rows[i]["fits"] is fits]
        xs, said = [rows[i]["peak_bytes"] for i in found], [need[i] for i in found]
        traces.append(bar(name, colour, y=found, x=xs, customdata=said) | {"width": 0.35})
    knobs = list(dict.fromkeys(knob for row in rows for knob in row["largest"]))
    cells = [
        (
            row["hardware"],
            *(format_bytes(row["bytes"]), format_bytes(row["peak_bytes"])),
            *(_value(row["largest"][k]) if k in row["largest"] else "none" for k in knobs),
        )
        for row in rows
    ]
    return Picture(
        key="capacity",
        title="What fits where",
        note="What this run needs there, of the memory that there is. Point at a bar, or see the "
        "numbers, for the largest value of each setting that still fits.",
        traces=[trace for trace in traces if trace["x"]],
        layout={
            "barmode": "overlay",
            "xaxis": byte_axis(max(max(row["bytes"], row["peak_bytes"]) for row in rows)),
            "yaxis": rows_axis([label(name) for name in hardware]),
            "legend": legend_below(),
        },
        height=lying(len(rows)),
        table=rows_table(("hardware", *numbers("memory", "needed there", *knobs)), cells),
    )


def _value(value: int | None) -> str:
    return "any" if value is None else f"{value:,}"


def _largest(data: Data, rows: Sequence[dict[str, Any]]) -> Picture:
    knob = plain(data["over"])
    at = list(range(len(rows)))
    ways = [
        ("by the measured line", "largest", _MEASURED),
        ("by the plan", "planned", series_colour(4)),
    ]
    traces = []
    for name, key, colour in ways:
        found = [(i, row) for i, row in enumerate(rows) if row.get(key) is not None]
        said = [
            f"{plain(r['hardware'])}, {format_bytes(r['bytes'])}<br>"
            f"{knob} up to <b>{r[key]:,}</b> {name}"
            for _, r in found
        ]
        xs = [row[key] for _, row in found]
        texts = [
            f"{x:,}{', extrapolated' * r['extrapolated']}"
            for x, (_, r) in zip(xs, found, strict=True)
        ]
        traces.append(
            bar(name, colour, y=[i for i, _ in found], x=xs, customdata=said)
            | {"text": texts, "textposition": "auto"}
        )
    cells = [
        (
            r["hardware"],
            format_bytes(r["bytes"]),
            f"{r['largest']:,}",
            _value(r["planned"]) if "planned" in r else "",
        )
        for r in rows
    ]
    return Picture(
        key="capacity",
        title=f"Largest {visible_line(data['over'])} that fits",
        note="Extrapolated: more than twice the largest value that was measured.",
        traces=[trace for trace in traces if trace["x"]],
        layout={
            "barmode": "group",
            "xaxis": whole_axis(max(row["largest"] for row in rows), fixedrange=True),
            "yaxis": rows_axis([label(row["hardware"]) for row in rows]),
            "legend": legend_below(),
        },
        height=lying(2 * len(at)),
        table=rows_table(("hardware", *numbers("memory", *(name for name, _, _ in ways))), cells),
    )
