"""A recorded run as blocks, as JSON, and as one line while it runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from memfit.model import EventKind, Forecast, Growth, Reading, RowsAt, Trace
from memfit.model.json_loader import to_json
from memfit.render.blocks import (
    Bars,
    Block,
    Heading,
    Text,
    Tone,
    bars,
    muted,
    names,
    numbers,
    section,
)
from memfit.render.result_json import SCHEMA, component_json, picked
from memfit.units import MIB, format_bytes, shortened

_BARS = 24
_ROWS = 8
_NAME = 60  # characters of a process's name
_UNREAD = 0.02  # of the peak
_NOT_READ = "came after the rows were read"
_NO_END = "its end is not recorded"  # it runs still, or memfit ended before it
BAD = (EventKind.KILLED, EventKind.OUT_OF_MEMORY, EventKind.TERMINATED)


def live_line(reading: Reading, forecast: Forecast | None) -> str:
    """What a terminal shows while a command runs."""
    parts = [
        f"memfit: {format_bytes(reading.bytes)}",
        f"{reading.processes} processes" if reading.processes > 1 else "one process",
        f"{reading.threads} threads",
        f"{reading.seconds:.0f} s",
    ]
    if forecast is not None and forecast.growth is not Growth.UNKNOWN:
        parts.append(forecast_text(forecast))
    return ", ".join(parts)


def forecast_text(forecast: Forecast) -> str:
    """How it goes on, in a few words."""
    text = str(forecast.growth)
    if forecast.growth.at_one_pace or forecast.growth is Growth.FILLING:
        text += f" by {format_bytes(round(forecast.bytes_per_second))}/s"
    if forecast.slowing:
        text += ", slowing down"
    if forecast.growth.at_one_pace and forecast.since is not None:
        text += f" since {forecast.since:.0f} s"
    if forecast.members:
        text += f" in {', '.join(shortened(member, _NAME) for member in forecast.members)}"
    if forecast.ends_at_bytes is not None:
        about = "about " if forecast.slowing else ""
        text += f", ends at {about}{format_bytes(forecast.ends_at_bytes)}"
    if forecast.reaches_limit_at is not None and forecast.low is not None:
        last = "never" if forecast.high is None else f"{forecast.high:.0f} s"
        text += f", the limit at {forecast.reaches_limit_at:.0f} s ({forecast.low:.0f} s to {last})"
        text += forecast.condition
        if forecast.step is not None:
            text += f", step {forecast.step:,}"
    return text


def trace_summary(trace: Trace, forecast: Forecast, place: str = "") -> list[Block]:
    """Peak, its largest rows, how the run ended, and a verdict: a few lines."""
    bad = [Text(e.text, Tone.BAD) for e in trace.events if e.kind in (*BAD, EventKind.GROWTH)]
    if trace.peak is None:
        text = f"ended with exit code {trace.exit_code} before it could be read"
        unknown = f"it was never read, and {_NO_END}"
        return [*muted([unknown if trace.exit_code is None else text]), *bad]
    peak = trace.peak
    phase = trace.phase_at(peak.seconds)
    text = f"peak {format_bytes(peak.bytes)} after {peak.seconds:.1f} s"
    text += f", in {phase}" if phase else ""
    if trace.limit is not None:
        text += f"; limit {format_bytes(trace.limit.bytes)}"
    ended = _NO_END if trace.exit_code is None else f"exit code {trace.exit_code}"
    text += f"; ran for {trace.seconds:.1f} s, {ended}"
    blocks: list[Block] = [Text(text, verdict=True)]
    if rows := _largest(trace):
        named = ", ".join(f"{name} {format_bytes(amount)}" for name, amount in rows[:4])
        unread = _unread(trace)
        blocks += muted([f"largest rows: {named}{f'; {unread}' if unread else ''}"])
    blocks += bad
    over = (trace.limit_share or 0) > 1 or forecast.growth is Growth.LEAKING
    tone = Tone.BAD if bad or over else Tone.GOOD
    blocks.append(Text(f"verdict: {_verdict(trace, forecast)}", tone, verdict=True))
    until = " only until recording ended" if trace.cut else ""
    return blocks + muted([f"recorded in {place}{until}: memfit explain {place}"] if place else ())


def _verdict(trace: Trace, forecast: Forecast) -> str:
    """Whether it stayed within its limit, and how its memory went on at its end."""
    parts = []
    if any(event.kind is EventKind.OUT_OF_MEMORY for event in trace.events):
        parts.append("short of memory")
    elif (share := trace.limit_share) is not None:
        parts.append(f"{'within' if share <= 1 else 'over'} its limit ({share:.0%} of it)")
    at = forecast.reaches_limit_at
    if (trace.limit_share or 0) >= 1 or (at is not None and at <= trace.seconds):
        forecast = replace(forecast, reaches_limit_at=None)  # it is told already, or was not so
    growth = forecast_text(forecast)
    parts.append("no growth can be told yet" if forecast.growth is Growth.UNKNOWN else growth)
    return "; ".join(parts)


def _unread(trace: Trace) -> str:
    """What of the peak no row has, which were read at another time; empty where it is little."""
    if trace.unread_bytes < _UNREAD * (trace.peak.bytes if trace.peak else 0) or not trace.rows_at:
        return ""
    return f"read at {trace.rows_at:.1f} s, {format_bytes(trace.unread_bytes)} below the peak"


def trace_blocks(trace: Trace, forecast: Forecast) -> list[Block]:
    """A whole recording: summary, curve, rows at the peak, events."""
    blocks = trace_summary(trace, forecast)
    blocks += muted([" ".join(trace.command)])
    if trace.readings:
        blocks += [Heading("Memory over time"), _curve(trace)]
    told = sorted(trace.holders.items(), key=lambda item: -item[1])
    at_peak = _largest(trace)
    if trace.unread_bytes:
        at_peak.append((_NOT_READ, trace.unread_bytes))
    for heading, rows in (("Rows at the peak", at_peak), ("As the run told", told)):
        if rows:
            shown = ((name, f"{amount / MIB:,.1f}") for name, amount in _most(rows))
            blocks += section(heading, (names("component"), *numbers("MiB")), shown)
    if trace.events:
        events = ((f"{e.seconds:.1f}", e.kind.value, e.text) for e in trace.events[-40:])
        blocks += section("Events", (*numbers("seconds"), "event", "what"), events)
    return blocks


def trace_json(trace: Trace, forecast: Forecast) -> dict[str, Any]:
    """A recording for programs."""
    peak = trace.peak
    ledger = trace.peak_ledger
    return {
        "schema": SCHEMA,
        "kind": "recording",
        "command": list(trace.command),
        "pid": trace.pid,
        "exit_code": trace.exit_code,
        "peak_bytes": peak.bytes if peak else 0,
        "peak_seconds": peak.seconds if peak else 0.0,
        "limit_bytes": trace.limit.bytes if trace.limit else None,
        "fits": trace.limit is None or peak is None or peak.bytes <= trace.limit.bytes,
        "seconds": trace.seconds,
        "unattributed_bytes": trace.unattributed_bytes,
        "rows_seconds": trace.rows_at,
        "components": [component_json(ledger, c) for c in ledger.components] if ledger else [],
        "holders": [{"holder": h, "bytes": amount} for h, amount in trace.holders.items()],
        "forecast": forecast_json(forecast),
        "events": to_json(trace.events),
        "readings": [[r.seconds, r.bytes] for r in trace.readings],
        "members": [
            {"pid": m.pid, "name": m.name, "readings": [[r.seconds, r.bytes] for r in m.readings]}
            for m in trace.members
        ],
        "rows_over_time": [_rows_json(at) for at in trace.rows_over_time],
    }


def _rows_json(at: RowsAt) -> dict[str, Any]:
    rows = at.ledger.components
    return {
        "seconds": at.seconds,
        "components": [{**picked(c, "name", "kind"), "bytes": at.ledger.bytes_of(c)} for c in rows],
    }


def forecast_json(forecast: Forecast) -> dict[str, Any]:
    """How it goes on, for programs; times are seconds from the run's start."""
    return {**to_json(forecast), "bytes_per_second": round(forecast.bytes_per_second, 1)}


def _most(rows: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """The largest rows, and all others in one: they add up."""
    most = 3 * _ROWS
    if len(rows) <= most:
        return rows
    rest = sum(amount for _, amount in rows[most - 1 :])
    return [*rows[: most - 1], (f"{len(rows) - most + 1} smaller rows", rest)]


def _largest(trace: Trace) -> list[tuple[str, int]]:
    return list(trace.peak_ledger.row_bytes.items()) if trace.peak_ledger else []


def _curve(trace: Trace) -> Bars:
    last = trace.readings[-1].seconds or 1.0
    highs: dict[int, int] = {}
    for reading in trace.readings:
        at = min(_BARS - 1, int(reading.seconds / last * _BARS))
        highs[at] = max(highs.get(at, 0), reading.bytes)
    rows = [(f"{(at + 1) * last / _BARS:.0f} s", high) for at, high in sorted(highs.items())]
    top = max(highs.values())
    return bars(rows, [i for i, (_, high) in enumerate(rows) if high == top], picture="timeline")
