"""A sweep as blocks and as JSON."""

from __future__ import annotations

import shlex
from typing import Any

from memfit.model import Outcome, Point, Sweep
from memfit.render.blocks import Block, Column, Heading, Table, Text, Tone
from memfit.units import format_bytes


def sweep_blocks(sweep: Sweep) -> list[Block]:
    """Measured peaks, the line through them, and what it allows."""
    limit = f"{format_bytes(sweep.limit_bytes)} ({sweep.limit_source})"
    blocks: list[Block] = [
        Heading(text=f"Measured peaks over {sweep.knob}"),
        Text(text=f"{shlex.join(sweep.command)}; limit {limit}", tone=Tone.MUTED),
        Table(
            columns=(
                Column(name=sweep.knob, number=True),
                Column(name="peak", number=True),
                Column(name=f"peak / {sweep.knob}", number=True),
                Column(name="seconds", number=True),
                Column(name="outcome"),
            ),
            rows=tuple(_row(point) for point in sweep.points),
        ),
    ]
    line = sweep.line
    if line is not None:
        each = format_bytes(round(line.bytes_per_unit))
        low, high = format_bytes(round(line.low)), format_bytes(round(line.high))
        blocks.append(
            Text(
                text=f"{format_bytes(line.fixed_bytes)} fixed, and {each} for each of {sweep.knob} "
                f"({low} to {high})"
            )
        )
    if sweep.largest:
        blocks += [
            Heading(text=f"Largest {sweep.knob} by the measured line"),
            Table(
                columns=(
                    Column(name="hardware"),
                    Column(name="memory", number=True),
                    Column(name=sweep.knob, number=True),
                ),
                rows=tuple(
                    (name, format_bytes(amount), f"{value:,}")
                    for name, (amount, value) in sweep.largest.items()
                ),
            ),
        ]
    blocks += [
        Text(text=f"{sweep.knob} {point.value:,} {point.outcome}: {_last(point)}", tone=Tone.BAD)
        for point in sweep.points
        if point.outcome in (Outcome.FAILED, Outcome.TIMED_OUT)
    ]
    return blocks


def _row(point: Point) -> tuple[str, ...]:
    over = point.outcome is Outcome.OUT_OF_MEMORY
    peak = format_bytes(point.peak_bytes)
    return (
        f"{point.value:,}",
        f"over {peak}" if over else peak,
        "" if over else format_bytes(point.bytes_each),
        f"{point.seconds:.1f}",
        point.outcome.value,
    )


def _last(point: Point) -> str:
    lines = [line for line in point.said.splitlines() if line.strip()]
    return lines[-1].strip() if lines else f"exit code {point.exit_code}"


def sweep_json(sweep: Sweep) -> dict[str, Any]:
    """The same for programs."""
    line = sweep.line
    return {
        "schema": 1,
        "kind": "sweep",
        "command": list(sweep.command),
        "over": sweep.knob,
        "limit_bytes": sweep.limit_bytes,
        "limit_source": sweep.limit_source,
        "points": [
            {
                "value": point.value,
                "peak_bytes": point.peak_bytes,
                "outcome": point.outcome.value,
                "exit_code": point.exit_code,
                "seconds": round(point.seconds, 3),
            }
            for point in sweep.points
        ],
        "fit": line
        and {
            "fixed_bytes": line.fixed_bytes,
            "bytes_per_unit": line.bytes_per_unit,
            "low": line.low,
            "high": line.high,
        },
        "capacity": [
            {"hardware": name, "bytes": amount, "largest": value}
            for name, (amount, value) in sweep.largest.items()
        ],
        "seconds": round(sweep.seconds, 3),
    }
