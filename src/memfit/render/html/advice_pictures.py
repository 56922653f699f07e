"""What changes to a run would save, what they saved where that was measured, and what is left."""

from __future__ import annotations

from collections.abc import Iterator

from memfit.render.blocks import names, numbers
from memfit.render.html.figure import (
    Data,
    Picture,
    Trace,
    bar,
    byte_axis,
    label,
    legend_below,
    limit_line,
    lying,
    marks,
    reach,
    rows_axis,
    told,
)
from memfit.render.html.ledger_pictures import rows_table
from memfit.render.html.palette import INK, series_colour
from memfit.units import format_bytes

_MOST_ROWS = 30
_SAVED = series_colour(2)


def savings(data: Data) -> Iterator[Picture]:
    """What each change would save; what was measured of it as bars under the prediction."""
    advice = [a for a in data.get("advice") or () if _predicted(a) or _measured(a)]
    if not advice:
        return
    shown = sorted(advice, key=lambda a: -(_measured(a) or _predicted(a)))[:_MOST_ROWS]
    at = range(len(shown))
    measured = [(i, _measured(shown[i])) for i in at if _measured(shown[i])]
    predicted = [(i, _predicted(shown[i])) for i in at if _predicted(shown[i])]
    traces: list[Trace] = []
    if measured:
        traces.append(_bars("measured", measured, [_words(shown[i]) for i, _ in measured]))
        said = told((f"{_words(shown[i])}: predicted", n) for i, n in predicted)
        ys, xs = [i for i, _ in predicted], [n for _, n in predicted]
        traces.append(marks("predicted", INK, "diamond-open", y=ys, x=xs, text=said))
    else:
        traces.append(_bars("saves", predicted, [_words(shown[i]) for i, _ in predicted]))
    yield Picture(
        key="savings",
        title="What would save memory",
        note="Each change alone; several do not always add up."
        + (" Bars were measured, marks predicted." if measured else ""),
        traces=[trace for trace in traces if trace["x"]],
        layout={
            "xaxis": byte_axis(max(n for _, n in (*measured, *predicted))),
            "yaxis": rows_axis([label(_short(a)) for a in shown]),
            "legend": legend_below(),
            "showlegend": bool(measured),
        },
        height=lying(len(shown), legend=bool(measured)),
        table=rows_table(
            ("change", "code", *numbers("predicted", "measured")),
            [
                (
                    a["change"],
                    a["code"],
                    *map(_size, (a.get("saves_bytes"), a.get("measured_bytes"))),
                )
                for a in shown
            ],
        ),
    )


def _bars(name: str, rows: list[tuple[int, int]], words: list[str]) -> Trace:
    amounts = [n for _, n in rows]
    said = told(zip(words, amounts, strict=True))
    return bar(name, _SAVED, y=[i for i, _ in rows], x=amounts, customdata=said) | {
        "text": [format_bytes(n) for n in amounts],
        "textposition": "auto",
        "insidetextanchor": "start",
    }


def _predicted(advice: Data) -> int:
    return max(0, advice.get("saves_bytes") or 0)


def _measured(advice: Data) -> int:
    return max(0, advice.get("measured_bytes") or 0)


def _short(advice: Data) -> str:
    """A change beside an axis: its code and what is typed, without what follows from it."""
    typed = str(advice["change"]).split(": ")[0].replace("memfit.dropins.", "")
    return f"{advice['code']} {typed}"


def _words(advice: Data) -> str:
    return f"{advice['code']}: {advice['change']}"[:120]


def _size(amount: int | None) -> str:
    return "" if amount is None else format_bytes(amount)


def before_and_after(data: Data) -> Iterator[Picture]:
    """The measured peak of a run as it is, and with all changes that help."""
    together = data.get("together")
    before, after = data.get("peak_bytes"), data.get("after_bytes")
    if not isinstance(together, dict) or before is None or after is None:
        return
    rows = [("as it is", before), (f"with {', '.join(together['codes'])}", after)]
    limit = data.get("limit_bytes")
    trace = bar("peak", series_colour(0), y=[0, 1], x=[before, after], customdata=told(rows))
    yield Picture(
        key="before-after",
        title="Before and after",
        note="Measured peaks of the run, with all changes together.",
        traces=[trace | {"text": [format_bytes(n) for _, n in rows], "textposition": "auto"}],
        layout={
            "xaxis": byte_axis(reach(limit, before, after)),
            "yaxis": rows_axis([label(name) for name, _ in rows]),
            "showlegend": False,
            **limit_line(limit, max(before, after), upright=True),
        },
        height=lying(2, legend=False),
        table=rows_table((names("run"), *numbers("peak")), [(n, format_bytes(b)) for n, b in rows]),
    )
