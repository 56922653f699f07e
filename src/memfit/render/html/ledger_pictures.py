"""Pictures of a ledger: what is alive when, and what each moment consists of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from memfit.model import Kind, phase_of
from memfit.render.blocks import Table, names, numbers, section
from memfit.render.html.figure import (
    Data,
    Picture,
    Trace,
    View,
    bar,
    byte_axis,
    label,
    legend_below,
    limit_line,
    lying,
    marks,
    names_axis,
    plain,
    reach,
)
from memfit.render.html.palette import INK, KINDS, kind_colour
from memfit.render.plan import KIND_WORDS
from memfit.units import format_bytes

Row = dict[str, Any]
_DEVICE = "device"
_KINDS = [*KINDS, *(str(kind) for kind in Kind if kind not in KINDS)]  # what is fixed first
_NOW = "now"


def kind_words(kind: str) -> str:
    """A kind of memory as people say it."""
    if kind == Kind.UNATTRIBUTED or kind not in _KINDS:
        return kind
    return KIND_WORDS.get(Kind(kind), kind)


def rows_table(columns: Sequence[Any], rows: Sequence[tuple[str, ...]]) -> Table:
    """The numbers behind a picture."""
    return next(
        block
        for block in section("", columns, rows or [("",) * len(columns)])
        if isinstance(block, Table)
    )


def moments(data: Data) -> Iterator[Picture]:
    """A plan: the moments of a run, each with what is alive in it."""
    amounts = data.get("moments")
    if not isinstance(amounts, dict) or not amounts:
        return
    rows = _of_machine(data)
    peak, upper, limit = data["peak_moment"], data["upper_bytes"], data["limit_bytes"]
    traces: list[Trace] = []
    for kind in _present(rows):
        alive = [(m, r) for r in rows if r["kind"] == kind for m in amounts if _alive(r, m)]
        traces.append(
            bar(
                kind_words(kind),
                kind_colour(kind),
                y=[plain(moment) for moment, _ in alive],
                x=[row["bytes"] for _, row in alive],
                customdata=[_said(row) for _, row in alive],
            )
        )
    mark = f"at most {format_bytes(upper)}, with all that is in doubt"
    traces.append(
        marks("upper bound", INK, "line-ns-open", x=[upper], y=[plain(peak)], text=[mark])
    )
    top = reach(limit, upper, *amounts.values())
    yield Picture(
        key="moments",
        title="What is alive when",
        note="Each moment of the run, stacked by component. The peak is the longest bar. Choose a "
        "bar to see what it consists of.",
        traces=traces,
        layout={
            "barmode": "stack",
            "xaxis": byte_axis(top),
            "yaxis": names_axis(categoryorder="array", categoryarray=[plain(m) for m in amounts]),
            "legend": {**legend_below(), "traceorder": "normal"},
            **limit_line(limit, upper, upright=True),
        },
        height=lying(len(amounts)),
        leads=True,
        table=_moments_table(rows, amounts),
    )


def _moments_table(rows: Sequence[Row], amounts: dict[str, int]) -> Table:
    shown = sorted(rows, key=lambda row: -row["bytes"])
    cells = [
        (r["name"], kind_words(r["kind"]), *(_cell(r, moment) for moment in amounts)) for r in shown
    ]
    cells.append(("all of them", "", *(format_bytes(amount) for amount in amounts.values())))
    return rows_table((names("component"), "kind", *numbers(*amounts)), cells)


def _cell(row: Row, moment: str) -> str:
    return format_bytes(row["bytes"]) if _alive(row, moment) else ""


def composition(data: Data) -> Iterator[Picture]:
    """What the memory consists of, as areas: at each moment, over time, or now."""
    over_time = data.get("rows_over_time") or []
    rows = _of_machine(data)
    if isinstance(data.get("moments"), dict) and data["moments"]:
        views = [
            _view(m, m, [r for r in rows if _alive(r, m)], total=n)
            for m, n in data["moments"].items()
        ]
        yield _areas("Choose a moment.", views, data["peak_moment"], rows)
    elif over_time:
        views = [
            _view(
                f"{at['seconds']:.1f}", f"{at['seconds']:.1f} s", at["components"], at=at["seconds"]
            )
            for at in over_time
        ]
        shown = f"{data['rows_seconds']:.1f}"
        note = "Choose a time here or in the timeline."
        yield _areas(note, views, shown, rows, more_tables=[_times_table(over_time)])
    elif rows and all("kind" in row for row in rows):
        when = "at the peak" if data.get("kind") == "recording" else _NOW
        yield _areas("", [_view(_NOW, when, rows)], _NOW, rows)
    if card := [row for row in data.get("components", ()) if row.get("place") == _DEVICE]:
        moment = (data.get("device") or {}).get("peak_moment", "")
        alive = [row for row in card if not moment or _alive(row, moment)]
        title = "What the card holds at its peak"
        yield _areas("", [_view(_NOW, _NOW, alive)], _NOW, alive, key="card", title=title)


def _times_table(over_time: Sequence[dict[str, Any]]) -> Table:
    """Every component at every time."""
    found: dict[str, dict[float, str]] = {}
    for at in over_time:
        for row in at["components"]:
            found.setdefault(row["name"], {})[at["seconds"]] = format_bytes(row["bytes"])
    times = [at["seconds"] for at in over_time]
    columns = (names("component"), *numbers(*(f"{seconds:.1f} s" for seconds in times)))
    cells = [(name, *(held.get(s, "") for s in times)) for name, held in found.items()]
    return rows_table(columns, cells)


def _areas(
    note: str,
    views: Sequence[View],
    shown: str,
    rows: Sequence[Row],
    *,
    key: str = "composition",
    title: str = "What it consists of",
    more_tables: Sequence[Table] = (),
) -> Picture:
    cells = [
        (row["name"], kind_words(row["kind"]), format_bytes(row["bytes"]), f"{row['bytes']:,}")
        for row in sorted(rows, key=lambda row: -row["bytes"])
    ]
    return Picture(
        key=key,
        title=title,
        note=f"An area for each component, as large as its memory, by kind. {note}".strip(),
        views=views,
        shown=shown,
        layout={
            "margin": {"l": 0, "r": 0, "t": 4, "b": 0},
            # A name that has no room is left out; it is told where one points.
            "uniformtext": {"minsize": 9, "mode": "hide"},
        },
        height=420,
        table=rows_table((names("component"), "kind", *numbers("size", "bytes")), cells),
        more_tables=more_tables,
    )


def _view(
    key: str, words: str, rows: Sequence[Row], *, total: int | None = None, at: float | None = None
) -> View:
    kinds = _present(rows)
    top = words if total is None else f"{words}: {format_bytes(total)}"
    inner = "%{label}<br>%{percentRoot:.1%}"
    ids, parents = ["all", *kinds], ["", *["all" for _ in kinds]]
    labels, values = [plain(top), *map(kind_words, kinds)], [0, *[0 for _ in kinds]]
    colours, texts = ["rgba(0,0,0,0)", *map(kind_colour, kinds)], ["", *["" for _ in kinds]]
    templates, hovers = ["%{label}", *[inner for _ in kinds]], ["", *[inner for _ in kinds]]
    for number, row in enumerate(rows):
        ids.append(f"{number}")
        parents.append(row["kind"])
        labels.append(label(row["name"]))
        values.append(row["bytes"])
        colours.append(kind_colour(row["kind"]))
        texts.append(format_bytes(row["bytes"]))
        templates.append("%{label}<br>%{text}")
        hovers.append(f"{_said(row)}<br>%{{percentRoot:.1%}} of all")
    trace = {
        "type": "treemap",
        "ids": ids,
        "labels": labels,
        "parents": parents,
        "values": values,
        "text": texts,
        "texttemplate": templates,
        "branchvalues": "remainder",
        "customdata": hovers,
        "hovertemplate": [f"{text}<extra></extra>" for text in hovers],
        "marker": {
            "colors": colours,
            "line": {"color": "@paper", "width": 1},
            "pad": {"t": 20, "l": 1, "r": 1, "b": 1},
        },
        "tiling": {"pad": 1},
        "pathbar": {"visible": False},
    }
    return View(key=key, label=words, trace=trace, at=at)


def _of_machine(data: Data) -> list[Row]:
    rows = data.get("components")
    if not isinstance(rows, list):
        return []
    return [r for r in rows if r.get("place") != _DEVICE and "kind" in r and r.get("bytes", 0) > 0]


def _present(rows: Sequence[Row]) -> list[str]:
    """The kinds that are there, always in the same order."""
    there = {row["kind"] for row in rows}
    return [kind for kind in _KINDS if kind in there] + sorted(there.difference(_KINDS))


def _alive(row: Row, moment: str) -> bool:
    return moment in row["phases"] or phase_of(moment) in row["phases"]


def _said(row: Row) -> str:
    """What is told of a row when it is pointed at; a percent sign would be a field."""
    why = row.get("formula", "")
    fixed = not any(sign.isalpha() for sign in why)
    parts = [f"<b>{plain(row['name'])}</b>", format_bytes(row["bytes"]), kind_words(row["kind"])]
    if why and not fixed:
        parts.append(plain(why if len(why) <= 70 else f"{why[:69]}…"))
    return "<br>".join(parts).replace("%{", "%\u200b{")
