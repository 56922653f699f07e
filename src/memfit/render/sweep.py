"""A sweep as blocks and as JSON."""

from __future__ import annotations

import shlex
from typing import Any

from memfit.model import Outcome, Point, Sweep, SweepStep
from memfit.model.json_loader import to_json
from memfit.render.blocks import Block, Text, Tone, muted, numbers, section
from memfit.render.result_json import SCHEMA, picked
from memfit.units import format_bytes

_CELLS = 24
_TWO = "from two values: how far off it may be is not known"
_EXTRAPOLATED = " (extrapolated)"


def sweep_blocks(sweep: Sweep) -> list[Block]:
    """Measured peaks, the line through them, and what it allows."""
    limit = f"{format_bytes(sweep.limit_bytes)} ({sweep.limit_source})"
    planned = any(point.planned_bytes is not None for point in sweep.points)
    titles = (sweep.knob, "peak", *(("planned", "error") if planned else ()))
    columns = (*numbers(*titles, f"peak / {sweep.knob}", "seconds"), "outcome")
    peaks = (_row(point, planned=planned) for point in sweep.points)
    blocks = section(f"Measured peaks over {sweep.knob}", columns, peaks)
    blocks[1:1] = muted([f"{_what(sweep)}; limit {limit}"])
    line = sweep.line
    if line is not None:
        each = format_bytes(round(line.bytes_per_unit))
        between = _TWO
        if line.low is not None and line.high is not None:
            between = f"{format_bytes(round(line.low))} to {format_bytes(round(line.high))}"
        blocks.append(
            Text(
                f"{format_bytes(line.fixed_bytes)} fixed, and {each} for each of {sweep.knob} "
                f"({between})",
                verdict=True,
            )
        )
    if sweep.largest:
        ways = ("by the measured line", *(("by the plan",) if sweep.planned else ()))
        blocks += section(
            f"Largest {sweep.knob} that fits",
            ("hardware", *numbers("memory", *ways)),
            (
                (name, format_bytes(amount), _by_line(sweep, value), *_planned(sweep, name))
                for name, (amount, value) in sweep.largest.items()
            ),
        )
    if any(sweep.is_extrapolated(value) for _, value in sweep.largest.values()):
        far = "extrapolated: more than twice the largest value that was measured, or less than half"
        blocks += muted([f"{far} of the smallest: growth may be no straight line; measure nearer"])
    blocks += [
        Text(f"{sweep.knob} {point.value:,} {point.outcome}: {_last(point)}", Tone.BAD)
        for point in sweep.points
        if point.outcome in (Outcome.FAILED, Outcome.TIMED_OUT)
    ]
    return blocks + muted(f"note: {note}" for note in sweep.notes)


def sweep_line(step: SweepStep, *, bar: bool) -> str:
    """Where a sweep is, in one line."""
    ended = step.outcome is not None
    done = _CELLS * (step.number if ended else step.number - 1) // step.of
    cells = f"[{'#' * done}{'-' * (_CELLS - done)}] " if bar else ""
    what = "running" if step.outcome is None else step.outcome.value
    return (
        f"memfit: {cells}run {step.number} of {step.of}: {step.knob} {step.value:,}, {what}, "
        f"{format_bytes(step.peak_bytes)}, {step.seconds:.0f} s"
    )


def _what(sweep: Sweep) -> str:
    command = shlex.join(sweep.command)
    if not sweep.target:
        return command
    return f"{sweep.target} -- {command}" if command else sweep.target


def _by_line(sweep: Sweep, value: int) -> str:
    return f"{value:,}{_EXTRAPOLATED if sweep.is_extrapolated(value) else ''}"


def _planned(sweep: Sweep, hardware: str) -> tuple[str, ...]:
    if not sweep.planned:
        return ()
    value = sweep.planned[hardware]
    return ("any" if value is None else f"{value:,}",)


def _row(point: Point, *, planned: bool) -> tuple[str, ...]:
    over = point.outcome is Outcome.OUT_OF_MEMORY
    peak = format_bytes(point.peak_bytes)
    beside: tuple[str, ...] = ()
    if planned:
        told, error = point.planned_bytes, point.plan_error
        beside = (
            "" if told is None else format_bytes(told),
            "" if error is None else f"{error:+.1%}",
        )
    return (
        f"{point.value:,}",
        f"over {peak}" if over else peak,
        *beside,
        "" if over else format_bytes(point.bytes_each),
        f"{point.seconds:.1f}",
        point.outcome.value,
    )


def _last(point: Point) -> str:
    lines = [line for line in point.said.splitlines() if line.strip()]
    return lines[-1].strip() if lines else f"exit code {point.exit_code}"


def sweep_json(sweep: Sweep) -> dict[str, Any]:
    """The same for programs."""
    fields = ("value", "peak_bytes", "planned_bytes", "outcome", "exit_code")
    return {
        "schema": SCHEMA,
        "kind": "sweep",
        "command": list(sweep.command),
        "target": sweep.target or None,
        "over": sweep.knob,
        "limit_bytes": sweep.limit_bytes,
        "limit_source": sweep.limit_source,
        "points": [
            {**picked(point, *fields), "seconds": round(point.seconds, 3)} for point in sweep.points
        ],
        "fit": to_json(sweep.line),
        "line": to_json(sweep.line_points),
        "capacity": [
            {
                "hardware": name,
                "bytes": amount,
                "largest": value,
                "extrapolated": sweep.is_extrapolated(value),
                **({"planned": sweep.planned[name]} if sweep.planned else {}),
            }
            for name, (amount, value) in sweep.largest.items()
        ],
        **picked(sweep, "confinement", "network"),
        "notes": list(sweep.notes),
        "seconds": round(sweep.seconds, 3),
    }
