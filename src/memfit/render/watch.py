"""A frame of a live view: as blocks, as JSON, as one line, and its last words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from memfit.errors import visible_line
from memfit.model import Frame, Growth
from memfit.model.json_loader import to_json
from memfit.render.blocks import (
    Bars,
    Block,
    Code,
    Heading,
    Text,
    Tone,
    bars,
    muted,
    numbers,
    section,
)
from memfit.render.chart import chart
from memfit.render.result_json import SCHEMA, picked
from memfit.render.trace import forecast_json, forecast_text
from memfit.units import format_bytes

_ROWS = 12
_HEIGHT = 6
_LARGEST = 4
_OLD = 2.0  # seconds


def frame_blocks(frame: Frame, width: int = 60) -> list[Block]:
    """A whole frame for scripts and files."""
    bad = frame.bytes > frame.limit.bytes or not all(target.met for target in frame.targets)
    blocks: list[Block] = [
        Text(frame_line(frame), Tone.BAD if bad else Tone.GOOD, verdict=True),
        Text(frame.title, Tone.MUTED),
    ]
    blocks += muted(frame.notes)
    if len(frame.readings) > 1:
        drawn = chart(frame.readings, width, _HEIGHT, frame.limit.bytes)
        blocks.append(Code("\n".join(drawn), picture="timeline"))
    if frame.targets:
        blocks += section(
            "Targets",
            ("target", *numbers("wanted", "found"), ""),
            (
                (t.name, f"at most {t.wanted}", t.found, "met" if t.met else "MISSED")
                for t in frame.targets
            ),
        )
    if frame.rows:
        blocks += [Heading(f"Rows{rows_age(frame)}"), row_bars(frame)]
    if frame.holders:
        blocks += [Heading("As the run told"), bars(frame.holders[:_ROWS])]
    if frame.processes:
        blocks += section(
            "Processes",
            (*numbers("PID", "memory", "threads"), "command"),
            (
                (
                    str(p.pid),
                    format_bytes(p.bytes),
                    str(p.threads or ""),
                    "  " * p.depth + p.name[:90],
                )
                for p in frame.processes
            ),
        )
    return blocks


def frame_json(frame: Frame) -> dict[str, Any]:
    """What `memfit watch --once --format json` prints."""
    return {
        "schema": SCHEMA,
        "kind": "watch",
        "title": frame.title,
        "pss_bytes": frame.bytes,
        "limit_bytes": frame.limit.bytes,
        "limit_source": frame.limit.source,
        "fits": frame.bytes <= frame.limit.bytes,
        "ended": frame.ended,
        "components": [{"name": name, "bytes": amount} for name, amount in frame.rows],
        "holders": [{"holder": name, "bytes": amount} for name, amount in frame.holders],
        "processes": [
            picked(p, "pid", "name", pss_bytes="bytes", threads="threads") for p in frame.processes
        ],
        "targets": to_json(frame.targets),
        "forecast": forecast_json(frame.forecast),
        "notes": list(frame.notes),
        "readings": [[r.seconds, r.bytes] for r in frame.readings],
    }


def frame_now(frame: Frame) -> str:
    """What is there now, without how it goes on."""
    parts = [
        f"{format_bytes(frame.bytes)} of {format_bytes(frame.limit.bytes)} ({frame.limit.source})",
        f"{len(frame.processes)} processes" if len(frame.processes) != 1 else "one process",
    ]
    if threads := sum(p.threads for p in frame.processes):  # they are not recorded
        parts.append(f"{threads} threads")
    return visible_line("; ".join(parts))


def outlook_text(frame: Frame) -> str:
    """How it goes on, or went; when its limit is reached only while that is ahead."""
    found = frame.forecast
    if found.growth is Growth.UNKNOWN:
        return "no growth can be told yet"
    if frame.ended or frame.bytes >= frame.limit.bytes:
        found = replace(found, reaches_limit_at=None)
    return visible_line(forecast_text(found))


def rows_age(frame: Frame) -> str:
    """When rows were read, where the total is newer; they take longer to read."""
    if frame.rows_at is None or not frame.readings:
        return ""
    old = frame.readings[-1].seconds - frame.rows_at
    return f"  (at {frame.rows_at:.0f} s)" if old > _OLD else ""


def frame_line(frame: Frame) -> str:
    """One line: how much of what, and how it goes on."""
    if frame.ended:
        peak = frame.peak
        text = f"ended; peak {format_bytes(peak.bytes)} of {format_bytes(frame.limit.bytes)}"
        return visible_line(f"{text} after {peak.seconds:.0f} s; {outlook_text(frame)}")
    parts = [frame_now(frame)]
    if frame.forecast.growth is not Growth.UNKNOWN:
        parts.append(outlook_text(frame))
    missed = [t.name for t in frame.targets if not t.met]
    if missed:
        parts.append(f"MISSED: {', '.join(missed)}")
    return visible_line("; ".join(parts))


def row_bars(frame: Frame) -> Bars:
    """The largest rows as lengths to compare."""
    return bars(frame.rows[:_ROWS])


def frame_summary(frame: Frame) -> list[Block]:
    """What is left to say at the end: the peak, its rows, why it ended, and a verdict."""
    peak = frame.peak
    last = frame.readings[-1].seconds if frame.readings else 0.0
    bad = peak.bytes > frame.limit.bytes
    text = f"peak {format_bytes(peak.bytes)} after {peak.seconds:.0f} s; limit "
    text += f"{format_bytes(frame.limit.bytes)} ({frame.limit.source}); "
    text += f"{'ended after' if frame.ended else 'goes on at'} {last:.0f} s"
    blocks: list[Block] = [Text(text, Tone.BAD if bad else Tone.PLAIN)]
    if frame.rows:
        named = (f"{name} {format_bytes(amount)}" for name, amount in frame.rows[:_LARGEST])
        blocks += muted([f"largest rows: {', '.join(named)}"])
    missed = [f"{t.name} {t.found}, at most {t.wanted}" for t in frame.targets if not t.met]
    blocks += [Text(f"MISSED: {target}", Tone.BAD) for target in missed]
    blocks += [Text(note) for note in frame.notes[:1]]
    return [*blocks, Text(f"verdict: {outlook_text(frame)}")]
