"""Pictures of a card's memory from a snapshot: over its history, and by place in the program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memfit.errors import visible_line
from memfit.render.blocks import Table, names, numbers
from memfit.render.html.figure import (
    Data,
    Picture,
    View,
    byte_axis,
    label,
    legend_below,
    line,
)
from memfit.render.html.ledger_pictures import rows_table
from memfit.render.html.palette import INK, series_colour
from memfit.units import format_bytes

_MOST_PLACES = 300
_NO_PLACE = "unattributed"


def cards(data: Data) -> Iterator[Picture]:
    """Each card of a snapshot."""
    for card in data.get("devices") or ():
        if card.get("timeline"):
            yield _history(card)
        yield _places(card)


def _history(card: dict[str, Any]) -> Picture:
    moments = card["timeline"]
    events = [moment["event"] for moment in moments]
    traces = []
    for name, key, colour in (
        ("reserved by the allocator", "reserved_bytes", INK),
        ("allocated by tensors", "allocated_bytes", series_colour(0)),
    ):
        amounts = [moment[key] for moment in moments]
        words = [
            f"event {e:,}, {name}: <b>{format_bytes(n)}</b>"
            for e, n in zip(events, amounts, strict=True)
        ]
        curve = line(name, colour, x=events, y=amounts, text=words)
        curve["line"] |= {"shape": "hv"}
        traces.append(curve | ({"fill": "tozeroy"} if key == "allocated_bytes" else {}))
    return Picture(
        key=f"card-{card['device']}-history",
        title=f"Memory of cuda:{card['device']} over its history",
        note="Each event is a request to the allocator, or something given back to it.",
        traces=traces,
        layout={
            "xaxis": {
                "title": {"text": "event"},
                "zeroline": False,
                "showgrid": False,
                "automargin": True,
            },
            "yaxis": byte_axis(max(moment["reserved_bytes"] for moment in moments)),
            "legend": legend_below(),
        },
        height=360,
        table=rows_table(
            numbers("event", "allocated", "reserved"),
            [
                (f"{m['event']:,}", *map(format_bytes, (m["allocated_bytes"], m["reserved_bytes"])))
                for m in moments
            ],
        ),
    )


def _places(card: dict[str, Any]) -> Picture:
    """What was reserved: by place in the program, what has none, and what no tensor has."""
    parts = [(p["name"], p["bytes"]) for p in card["stacks"][:_MOST_PLACES]]
    parts += [(_NO_PLACE, card["unattributed_bytes"])] if card["unattributed_bytes"] else []
    free = [
        ("free between blocks in use", card["inactive_split_bytes"]),
        ("cached: nothing uses it", card["cached_bytes"]),
    ]
    groups = [("tensors", series_colour(0), parts), ("no tensor", series_colour(5), free)]
    ids, labels, parents = ["all"], [f"reserved: {format_bytes(card['reserved_bytes'])}"], [""]
    values, colours, texts = [0], ["rgba(0,0,0,0)"], [""]
    for group, colour, rows in groups:
        ids.append(group)
        labels.append(group)
        parents.append("all")
        values.append(0)
        colours.append(colour)
        texts.append("")
        for number, (name, amount) in enumerate(rows):
            ids.append(f"{group}-{number}")
            labels.append(label(name))
            parents.append(group)
            values.append(amount)
            colours.append("#a3a3a3" if name == _NO_PLACE else colour)
            texts.append(format_bytes(amount))
    trace = {
        "type": "treemap",
        "ids": ids,
        "labels": labels,
        "parents": parents,
        "values": values,
        "text": texts,
        "textinfo": "label+text",
        "branchvalues": "remainder",
        "hovertemplate": "%{label}<br>%{text}<br>%{percentRoot:.1%} of all<extra></extra>",
        "marker": {
            "colors": colours,
            "line": {"color": "@paper", "width": 1},
            "pad": {"t": 18, "l": 1, "r": 1, "b": 1},
        },
        "tiling": {"pad": 1},
        "pathbar": {"visible": False},
    }
    return Picture(
        key=f"card-{card['device']}-places",
        title=f"What cuda:{card['device']} held {visible_line(card['moment'])}",
        note="An area for each place in the program that allocated it.",
        views=[View(key="now", label="now", trace=trace)],
        shown="now",
        layout={"margin": {"l": 0, "r": 0, "t": 4, "b": 0}},
        height=420,
        table=_table([*parts, *free]),
    )


def _table(rows: list[tuple[str, int]]) -> Table:
    cells = [(name, format_bytes(amount), f"{amount:,}") for name, amount in rows]
    return rows_table((names("place"), *numbers("size", "bytes")), cells)
