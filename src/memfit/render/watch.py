"""A frame of a live view: as blocks, as JSON, as one line, and as the text of its panels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memfit.errors import visible_line
from memfit.model import Frame, Growth, Reading
from memfit.model.json_loader import to_json
from memfit.render.blocks import Bars, Block, Heading, Text, Tone, bars, numbers, section
from memfit.render.result_json import SCHEMA, picked
from memfit.render.trace import forecast_json, forecast_text
from memfit.units import format_bytes

_ROWS = 12
_CURVE = "▁▂▃▄▅▆▇█"


def frame_blocks(frame: Frame, width: int = 60) -> list[Block]:
    """A whole frame for scripts and files."""
    over = frame.bytes > frame.limit.bytes
    blocks: list[Block] = [
        Text(frame_line(frame), Tone.BAD if over else Tone.GOOD),
        Text(frame.title, Tone.MUTED),
    ]
    if len(frame.readings) > 1:
        blocks += [Text(curve(frame.readings, width)), Text(scale(frame.readings), Tone.MUTED)]
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
        blocks += [Heading("Rows"), row_bars(frame)]
    if frame.processes:
        blocks += section(
            "Processes",
            (*numbers("PID", "memory", "threads"), "command"),
            (
                (str(p.pid), format_bytes(p.bytes), str(p.threads), "  " * p.depth + p.name[:90])
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
        "processes": [
            picked(p, "pid", "name", pss_bytes="bytes", threads="threads") for p in frame.processes
        ],
        "targets": to_json(frame.targets),
        "forecast": forecast_json(frame.forecast),
        "readings": [[r.seconds, r.bytes] for r in frame.readings],
    }


def frame_line(frame: Frame) -> str:
    """One line: how much of what, and how it goes on."""
    if frame.ended:
        peak = max(frame.readings, key=lambda r: r.bytes, default=Reading(seconds=0, bytes=0))
        text = f"ended; peak {format_bytes(peak.bytes)} of {format_bytes(frame.limit.bytes)}"
        return visible_line(f"{text} after {peak.seconds:.0f} s; {forecast_text(frame.forecast)}")
    parts = [
        f"{format_bytes(frame.bytes)} of {format_bytes(frame.limit.bytes)} ({frame.limit.source})",
        f"{len(frame.processes)} processes" if len(frame.processes) != 1 else "one process",
        f"{sum(p.threads for p in frame.processes)} threads",
    ]
    if frame.forecast.growth is not Growth.UNKNOWN:
        parts.append(forecast_text(frame.forecast))
    missed = [t.name for t in frame.targets if not t.met]
    if missed:
        parts.append(f"MISSED: {', '.join(missed)}")
    return visible_line("; ".join(parts))


def row_bars(frame: Frame) -> Bars:
    """The largest rows as lengths to compare."""
    return bars(frame.rows[:_ROWS])


def scale(readings: Sequence[Reading]) -> str:
    """What a curve goes from and to: time, and bytes at its highest."""
    if not readings:
        return ""
    first, last = readings[0].seconds, readings[-1].seconds
    top = format_bytes(max(reading.bytes for reading in readings))
    return f"{first:.0f} s to {last:.0f} s; full height is {top}"


def curve(readings: Sequence[Reading], width: int) -> str:
    """Memory over time as a line of blocks, from nothing to its highest."""
    if not readings or width < 1:
        return ""
    first, last = readings[0].seconds, readings[-1].seconds
    span = max(last - first, 1e-9)
    highs = [0] * width
    for reading in readings:
        at = min(width - 1, int((reading.seconds - first) / span * width))
        highs[at] = max(highs[at], reading.bytes)
    for i in range(1, width):
        highs[i] = highs[i] or highs[i - 1]
    top = max(highs) or 1
    return "".join(_CURVE[min(7, 8 * high // (top + 1))] for high in highs)
