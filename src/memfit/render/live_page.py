"""The live view as parts of a web page: the figures of the terminal, escaped, and a curve to draw.

Every part is whole HTML, so that a page without script shows the same. What others wrote stands in
it only through `_text`.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from typing import Any

from memfit.errors import visible_line
from memfit.model import Frame, Growth
from memfit.render.blocks import Bars, bars
from memfit.render.chart import curve, limit_is_near
from memfit.render.explain import format_seconds
from memfit.render.watch import frame_summary, outlook_text, row_bars, rows_age
from memfit.units import format_bytes, shortened

_POINTS = 400  # of a curve that is drawn
_SLICES = 40  # of one in plain HTML
_HOLDERS = 12
_PROCESSES = 40
_NAME = 120  # characters of a process's name
_SIGNS = {"good": "✓", "warn": "▲", "bad": "✕", "wait": "…"}


def live_page(template: str, runs: Mapping[str, tuple[Frame | None, str]]) -> str:
    """The whole page: what is shown of each run now, and where its script puts what comes."""
    several = len(runs) > 1
    sections = [_section(run_parts(name, *shown), several) for name, shown in runs.items()]
    title = " ".join(runs) if several else "memfit watch"
    page = template.replace("{{title}}", _text(title), 1)
    return page.replace("{{runs}}", "\n".join(sections), 1)


def run_parts(name: str, frame: Frame | None, failure: str) -> dict[str, Any]:
    """One run for the page's script: HTML by part, and the curve."""
    if frame is None:
        told = failure or "reading what it holds ..."
        head = _head("bad" if failure else "wait", told, "")
        return {"name": name, "parts": {**dict.fromkeys(_PARTS, ""), "head": head}, "curve": None}
    tone, said = verdict(frame)
    if failure:
        tone, said = "bad", failure
    parts = {
        "head": _head(tone, said, outlook_text(frame)),
        "title": _text(shortened(visible_line(frame.title), 300)),
        "tiles": _tiles(frame),
        "gauge": _gauge(frame),
        "notes": _list(frame.notes),
        "summary": _summary(frame) if frame.ended else "",
        "slices": _slices(frame),
        "rows": _panel(f"Rows: where the memory is{rows_age(frame)}", row_bars(frame)),
        "holders": _panel("Holders, as the run told", bars(frame.holders[:_HOLDERS])),
        "targets": _targets(frame),
        "processes": _processes(frame),
    }
    return {"name": name, "parts": parts, "curve": _curve(frame), "ended": frame.ended}


_PARTS = (
    *("head", "title", "tiles", "gauge", "notes", "summary", "slices", "rows", "holders"),
    *("targets", "processes"),
)


def verdict(frame: Frame) -> tuple[str, str]:
    """How it stands in a sentence, and how good that is."""
    if frame.ended:
        if frame.cut_short:
            return "bad", "Ended before its time"
        over = frame.peak.bytes > frame.limit.bytes
        return ("bad", "Ended, over its limit") if over else ("good", "Ended, within its limit")
    if frame.bytes > frame.limit.bytes:
        return "bad", "Over its limit"
    if (seconds := frame.seconds_to_limit) is not None:
        return "bad", f"Will reach its limit in about {format_seconds(seconds)}"
    if frame.forecast.growth is Growth.LEAKING:
        return "warn", "Within its limit, but it leaks"
    if frame.forecast.growth is Growth.GROWING:
        return "warn", "Within its limit, and it grows"
    if any(not target.met for target in frame.targets):
        return "warn", "Within its limit, but a target is missed"
    return "good", "Within its limit"


def _section(run: Mapping[str, Any], several: bool) -> str:
    part = {name: f'<div data-part="{name}">{run["parts"][name]}</div>' for name in _PARTS}
    name = _text(run["name"])
    label = f'<p class="name">{name}</p>' if several else ""
    return (
        f'<section class="run" data-run="{name}">{label}{part["head"]}'
        f'<p class="title" data-part="title">{run["parts"]["title"]}</p>'
        f"{part['summary']}{part['tiles']}{part['gauge']}{part['notes']}"
        '<div class="columns"><div class="panel curve"><h2>Memory over time</h2>'
        f'<div class="plot" hidden></div>{part["slices"]}</div>'
        f'<div class="side">{part["holders"]}{part["rows"]}</div></div>'
        f"{part['targets']}{part['processes']}</section>"
    )


def _head(tone: str, said: str, more: str) -> str:
    return (
        f'<h1 class="{tone}"><span class="sign" aria-hidden="true">{_SIGNS[tone]}</span>'
        f"{_text(said)}</h1><p class=outlook>{_text(more)}</p>"
    )


def _tiles(frame: Frame) -> str:
    counted = [_counted(len(frame.processes), "process", "processes")] if frame.processes else []
    if threads := sum(p.threads for p in frame.processes):  # they are not recorded
        counted.append(_counted(threads, "thread", "threads"))
    limit = f"{format_bytes(frame.limit.bytes)} ({frame.limit.source})"
    share = f"{_percent(frame.limit_share)} of {limit}"
    last = frame.readings[-1].seconds if frame.readings else 0.0
    tiles = [
        (
            "held last" if frame.ended else "now",
            format_bytes(frame.held_bytes),
            share,
        ),
        ("peak", format_bytes(frame.peak.bytes), f"after {format_seconds(frame.peak.seconds)}"),
        ("growth", *_growth(frame)),
        ("limit reached", *_reached(frame)),
        (
            "ran for" if frame.ended else "running for",
            format_seconds(last),
            ", ".join(counted),
        ),
    ]
    cells = (
        f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd><dd class=more>{_text(more)}</dd></div>"
        for name, value, more in tiles
    )
    return f"<dl class=tiles>{''.join(cells)}</dl>"


def _counted(count: int, one: str, many: str) -> str:
    return f"one {one}" if count == 1 else f"{count} {many}"


def _percent(share: float) -> str:
    return "below 1%" if 0 < share < 0.01 else f"{share:.0%}"


def _growth(frame: Frame) -> tuple[str, str]:
    found = frame.forecast
    if found.growth is Growth.UNKNOWN:
        return "-", "cannot be told yet"
    rate = f"{format_bytes(round(found.bytes_per_second))}/s"
    grows = found.growth.at_one_pace or found.growth is Growth.FILLING
    return str(found.growth), rate if grows else "no growth"


def _reached(frame: Frame) -> tuple[str, str]:
    if frame.ended:
        return "-", "it has ended"
    if frame.bytes >= frame.limit.bytes:
        return "now", "it is above it"
    seconds, low = frame.seconds_to_limit, frame.seconds_to_limit_at_least
    if seconds is None:
        return "-", "not foreseen"
    told = f"in {format_seconds(seconds)}"
    if low is None:
        return told, ""
    high = frame.seconds_to_limit_at_most
    last = "never" if high is None else format_seconds(high)
    return told, f"between {format_seconds(low)} and {last}"


def _gauge(frame: Frame) -> str:
    held, peak = (f"{min(1.0, share):.2%}" for share in (frame.limit_share, frame.peak_share))
    over = " over" if frame.limit_share > 1 else ""
    told = f"{format_bytes(frame.held_bytes)} of {format_bytes(frame.limit.bytes)}"
    return (
        f'<div class="gauge{over}" role=img aria-label="{_text(told)}">'
        f'<i style="width:{held}"></i><b style="left:{peak}" title="peak"></b></div>'
    )


def _list(texts: Iterable[str]) -> str:
    items = "".join(f"<li>{_text(text)}</li>" for text in texts)
    return f"<ul class=notes>{items}</ul>" if items else ""


def _summary(frame: Frame) -> str:
    told = (getattr(block, "text", "") for block in frame_summary(frame))
    lines = "".join(f"<p>{_text(text)}</p>" for text in told)
    return f"<div class=summary><h2>This run has ended</h2>{lines}</div>"


def _slices(frame: Frame) -> str:
    """The curve as lengths, for a page without script or without plotly."""
    shown = curve(frame.readings, _SLICES)
    drawn = bars((f"{r.seconds:.0f} s", r.bytes) for r in shown).bars
    columns = "".join(
        f'<i style="height:{bar.share:.1%}" title="{_text(f"{bar.label}: {bar.amount}")}"></i>'
        for bar in drawn
    )
    rows = "".join(f"<tr><td>{b.label}<td>{b.amount}" for b in drawn)
    return (
        f"<div class=slices role=img aria-label='memory over time'>{columns}</div>"
        f"<details><summary>As numbers</summary><table><tr><th>time<th>memory{rows}</table>"
        "</details>"
    )


def _panel(title: str, shown: Bars) -> str:
    rows = "".join(
        f"<li><span>{_text(bar.label)}</span><em>{_text(bar.amount)}</em>"
        f'<i style="width:{bar.share:.1%}"></i></li>'
        for bar in shown.bars
    )
    return _boxed(title, f"<ul class=bars>{rows}</ul>") if rows else ""


def _boxed(title: str, inner: str) -> str:
    return f"<div class=panel><h2>{_text(title)}</h2>{inner}</div>"


def _targets(frame: Frame) -> str:
    rows = "".join(
        f"<tr><td>{_text(t.name)}<td>at most {_text(t.wanted)}<td>{_text(t.found)}"
        f'<td class="{"good" if t.met else "bad"}">{"met" if t.met else "MISSED"}'
        for t in frame.targets
    )
    if not rows:
        return ""
    head = "<tr><th>target<th>wanted<th>found<th>"
    return _boxed("Targets", f"<table>{head}{rows}</table>")


def _processes(frame: Frame) -> str:
    rows = "".join(
        f"<tr><td class=n>{p.pid}<td class=n>{format_bytes(p.bytes)}"
        f"<td class=n>{p.threads or '-'}"
        f'<td class="command depth{min(p.depth, 1)}">'
        f"{_text(shortened(visible_line(p.name), _NAME))}"
        for p in frame.processes[:_PROCESSES]
    )
    if not rows:
        return ""
    left = len(frame.processes) - _PROCESSES
    more = f"<p class=more>and {left} more</p>" if left > 0 else ""
    head = "<tr><th class=n>PID<th class=n>memory<th class=n>threads<th>command"
    return _boxed("Processes", f"<table class=processes>{head}{rows}</table>{more}")


def _curve(frame: Frame) -> dict[str, Any]:
    found, shown = frame.forecast, curve(frame.readings, _POINTS)
    foreseen = frame.seconds_to_limit is not None
    near = limit_is_near(frame.limit.bytes, frame.peak.bytes)
    return {
        "seconds": [round(r.seconds, 2) for r in shown],
        "bytes": [r.bytes for r in shown],
        "limit": frame.limit.bytes if near or foreseen else None,
        "limit_text": f"limit {format_bytes(frame.limit.bytes)}",
        "reaches": [found.reaches_limit_at, found.low, found.high] if foreseen else None,
    }


def _text(text: str) -> str:
    """What may have been written by anybody, as text of a page and of its attributes."""
    return html.escape(visible_line(text), quote=True)
