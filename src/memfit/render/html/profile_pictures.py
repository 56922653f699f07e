"""Pictures of a profile: what an environment has in use, and what one more costs."""

from __future__ import annotations

from collections.abc import Iterator

from memfit.model import Counted
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
    marks,
    plain,
    rows_axis,
    told,
    whole_axis,
)
from memfit.render.html.ledger_pictures import rows_table
from memfit.render.html.palette import BAD, INK, series_colour
from memfit.units import format_bytes, format_change

_BYTES = (Counted.PYTHON, Counted.MALLOC, Counted.MAPPED, Counted.SHARED, Counted.OTHERS)
_COLOURS = ("#4c9f45", "#a8bd3a", "#9a6237", "#72cbb9", "#16877a")
_MOST_ROWS = 20


def in_use(data: Data) -> Iterator[Picture]:
    """What is in use over frames, by what it is; then who holds what grew."""
    readings = data.get("readings")
    if data.get("kind") != "profile" or not readings:
        return
    frames = [reading["frame"] for reading in readings]
    traces: list[Trace] = []
    grown: list[int] = []
    for what, colour in zip(_BYTES, _COLOURS, strict=True):
        found = [(r["frame"], r["in_use"][what]) for r in readings if r["in_use"].get(what)]
        if not found:
            continue
        first = found[0][1]
        grown += [amount - first for _, amount in found]
        traces.append(
            line(
                what,
                colour,
                x=[frame for frame, _ in found],
                y=[amount - first for _, amount in found],
                text=[_since(f"frame {f:,}, {what}", n, first) for f, n in found],
                mode="lines+markers",
            )
        )
    pss = [reading["pss_bytes"] for reading in readings]
    words = [_since(f"frame {f:,}, all of it", n, pss[0]) for f, n in zip(frames, pss, strict=True)]
    more = [amount - pss[0] for amount in pss]
    grown += more
    traces.append(
        line("all memory of the process", INK, x=frames, y=more, text=words, mode="lines+markers")
    )
    most = max(map(abs, grown))
    yield Picture(
        key="in-use",
        title="Growth over frames",
        note="By how much each kind of memory grew since the first reading, read where the "
        "environment waits. What goes on growing leaks; what ends does not.",
        traces=traces,
        layout={
            "xaxis": whole_axis(max(frames), title={"text": "frames"}, showgrid=False),
            "yaxis": change_axis(most) if min(grown) < 0 else byte_axis(most),
            "legend": legend_below(),
        },
        height=400,
        table=rows_table(
            numbers("frame", "episode", "all memory", *_BYTES),
            [
                (
                    *(f"{r['frame']:,}", f"{r['episode']:,}", format_bytes(r["pss_bytes"])),
                    *(format_bytes(r["in_use"][w]) if w in r["in_use"] else "" for w in _BYTES),
                )
                for r in readings
            ],
        ),
    )
    if data.get("holders"):
        yield _holders(data)


def _since(where: str, amount: int, first: int) -> str:
    return f"{where}: <b>{format_change(amount - first)}</b>, now {format_bytes(amount)}"


def _holders(data: Data) -> Picture:
    shown = sorted(data["holders"], key=lambda holder: -holder["bytes"])[:_MOST_ROWS]
    rows = [(f"{h['path']} ({h['what']})", h["bytes"]) for h in shown]
    rows.append(("unattributed: no holder was found", data["unattributed_bytes"]))
    trace = bar(
        "grew by", BAD, y=list(range(len(rows))), x=[n for _, n in rows], customdata=told(rows)
    )
    return Picture(
        key="holders",
        title="Who holds what grew",
        note="Each holder by what it grew while the environment was stepped.",
        traces=[trace | {"text": [format_bytes(n) for _, n in rows], "textposition": "auto"}],
        layout={
            "xaxis": byte_axis(max(n for _, n in rows)),
            "yaxis": rows_axis([label(name) for name, _ in rows]),
            "showlegend": False,
        },
        height=lying(len(rows), legend=False),
        table=rows_table(
            (names("holder"), *numbers("grew by")), [(n, format_bytes(b)) for n, b in rows]
        ),
    )


def costs(data: Data) -> Iterator[Picture]:
    """Memory over the number of environments, in one process and in workers."""
    measured = data.get("costs")
    if not measured:
        return
    traces = []
    for workers, name in ((False, "in one process"), (True, "in worker processes")):
        found = [(c["n_envs"], c["bytes"]) for c in measured if c["workers"] is workers]
        if found:
            words = [f"{n} envs {plain(name)}: <b>{format_bytes(b)}</b>" for n, b in found]
            xs, ys = [n for n, _ in found], [b for _, b in found]
            colour = series_colour(int(workers))
            traces.append(
                marks(name, colour, "circle", x=xs, y=ys, text=words, mode="lines+markers")
                | {"line": {"color": colour, "width": 2}}
            )
    yield Picture(
        key="costs",
        title="What environments cost",
        note="Each point is a process tree of its own, stepped for a while.",
        traces=traces,
        layout={
            "xaxis": whole_axis(
                max(c["n_envs"] for c in measured), title={"text": "environments"}, showgrid=False
            ),
            "yaxis": byte_axis(max(cost["bytes"] for cost in measured)),
            "legend": legend_below(),
        },
        height=360,
        table=rows_table(
            (*numbers("envs", "processes", "memory"), "where"),
            [
                (
                    *(f"{c['n_envs']:,}", f"{c['processes']:,}", format_bytes(c["bytes"])),
                    "worker processes" if c["workers"] else "one process",
                )
                for c in measured
            ],
        ),
    )
