"""Pictures of a process tree: its processes by layer, what grew; and findings by their code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from memfit.render.blocks import names, numbers
from memfit.render.html.figure import (
    Data,
    Picture,
    bar,
    byte_axis,
    change_axis,
    label,
    legend_below,
    lying,
    plain,
    rows_axis,
    told,
    whole_axis,
)
from memfit.render.html.ledger_pictures import rows_table
from memfit.render.html.palette import BAD, SEVERITIES, kind_colour, series_colour
from memfit.units import format_bytes, format_change

_MOST_PROCESSES, _MOST_ROWS = 25, 20
_LAYERS = {
    "libraries": "base",
    "mapped files": "mapped file",
    "Python objects": "objects",
    "malloc heap": "heap",
    "malloc arenas": "scratch",
    "large blocks": "large block",
    "thread stacks": "stacks",
    "shared memory": "arrays",
    "kernel": "fragmentation",
    "unattributed": "unattributed",
}


def processes(data: Data) -> Iterator[Picture]:
    """Each process of a tree, stacked by layer."""
    found = [p for p in data.get("processes") or () if p.get("parts")]
    if len(found) < 2:
        return
    shown = sorted(found, key=lambda process: -process["pss_bytes"])[:_MOST_PROCESSES]
    traces = []
    for layer, kind in _LAYERS.items():
        parts = [
            (i, part)
            for i, p in enumerate(shown)
            for part in p["parts"]
            if part["layer"] == layer and part["bytes"]
        ]
        if parts:
            said = told((f"{part['name']}, {layer}", part["bytes"]) for _, part in parts)
            xs, ys = [part["bytes"] for _, part in parts], [i for i, _ in parts]
            traces.append(bar(layer, kind_colour(kind), y=ys, x=xs, customdata=said))
    titles = [f"{p['pid']} {p['command'] or p['name']}" for p in shown]
    yield Picture(
        key="processes",
        title="Process by process",
        note="Each process by what its memory is for, pages that several share dealt out.",
        traces=traces,
        layout={
            "barmode": "stack",
            "xaxis": byte_axis(shown[0]["pss_bytes"]),
            "yaxis": rows_axis([label(title) for title in titles]),
            "legend": legend_below(),
        },
        height=lying(len(shown)),
        table=rows_table(
            (*numbers("PID", "memory"), "command"),
            [
                (str(p["pid"]), format_bytes(p["pss_bytes"]), p["command"] or p["name"])
                for p in shown
            ],
        ),
    )


def grown(data: Data) -> Iterator[Picture]:
    """What changed between two readings of a running tree."""
    rows = [row for row in data.get("growth") or () if row.get("bytes")][:_MOST_ROWS]
    if not rows:
        return
    most = max(abs(row["bytes"]) for row in rows)
    shrunk = any(row["bytes"] < 0 for row in rows)
    axis = change_axis(most) if shrunk else byte_axis(most)
    said = [
        f"{plain(r['name'])}<br><b>{format_change(r['bytes'])}</b>, "
        f"now {format_bytes(r['now_bytes'])}"
        for r in rows
    ]
    colours = [BAD if row["bytes"] > 0 else series_colour(2) for row in rows]
    trace = bar(
        "change", BAD, y=list(range(len(rows))), x=[r["bytes"] for r in rows], customdata=said
    )
    trace |= {"marker": {"color": colours}, "textposition": "outside"}
    yield Picture(
        key="growth",
        title=f"What changed in {data['growth_seconds']:.0f} s",
        note="Two readings, subtracted row by row.",
        traces=[trace | {"text": [format_change(r["bytes"]) for r in rows]}],
        layout={
            "xaxis": axis,
            "yaxis": rows_axis([label(row["name"]) for row in rows]),
            "showlegend": False,
        },
        height=lying(len(rows), legend=False),
        table=rows_table(
            (names("component"), *numbers("change", "now")),
            [(r["name"], format_change(r["bytes"]), format_bytes(r["now_bytes"])) for r in rows],
        ),
    )


def findings(data: Data) -> Iterator[Picture]:
    """How often each code was found, where there are many findings."""
    found = data.get("findings") or []
    codes = sorted({f["code"] for f in found})
    if len(found) < 5 or len(codes) < 2:
        return
    at = {code: number for number, code in enumerate(codes)}
    traces = []
    for severity, colour in SEVERITIES.items():
        ys = [at[f["code"]] for f in found if f["severity"] == severity]
        if ys:  # plotly counts them
            traces.append(
                {
                    "type": "histogram",
                    "y": ys,
                    "name": severity,
                    "orientation": "h",
                    "marker": {"color": colour, "line": {"color": "@paper", "width": 0.6}},
                    "ybins": {"start": -0.5, "end": len(codes) - 0.5, "size": 1},
                    "hovertemplate": f"{severity}: <b>%{{x}}</b><extra></extra>",
                }
            )
    yield Picture(
        key="findings",
        title="What was found how often",
        note="Findings by their code; all of them are listed below.",
        traces=traces,
        layout={
            "barmode": "stack",
            "bargap": 0.3,
            "legend": legend_below(),
            "xaxis": whole_axis(max(Counter(f["code"] for f in found).values()), fixedrange=True),
            "yaxis": rows_axis([plain(code) for code in codes]),
        },
        height=lying(len(codes)),
        table=rows_table(
            (names("code"), "severity", "where"),
            [(f["code"], f["severity"], f["where"]) for f in found],
        ),
    )
