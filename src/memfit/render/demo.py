"""A demonstration as blocks and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memfit.model import Compared, Demo, Line, SystemDemo
from memfit.render.blocks import Block, Column, Heading, Table, Text
from memfit.render.plan import plan_blocks
from memfit.units import format_bytes


def demo_blocks(demo: Demo) -> list[Block]:
    """The plan, then predicted beside measured."""
    return [
        *plan_blocks(demo.plan),
        Heading(text=f"Predicted beside measured, after {demo.updates} real updates"),
        _table("phase", [*demo.phases, demo.peak]),
        Heading(text="Row by row, in the training process"),
        _table("row", demo.rows),
        Text(text=f"The whole demonstration took {demo.seconds:.0f} s."),
    ]


def _table(first: str, rows: Sequence[Compared]) -> Table:
    return Table(
        columns=(
            Column(name=first),
            Column(name="predicted", number=True),
            Column(name="measured", number=True),
            Column(name="error", number=True),
        ),
        rows=tuple(
            (row.name, format_bytes(row.predicted), format_bytes(row.measured), _error(row))
            for row in rows
        ),
    )


def _error(row: Compared) -> str:
    if not row.measured:
        return "-"
    return f"{(row.predicted - row.measured) / row.measured:+.1%}"


def demo_json(demo: Demo) -> dict[str, Any]:
    """The comparison for programs."""
    return {
        "schema": 1,
        "kind": "demo",
        "target": demo.plan.target,
        "updates": demo.updates,
        "peak": _row(demo.peak),
        "phases": [_row(row) for row in demo.phases],
        "rows": [_row(row) for row in demo.rows],
        "seconds": round(demo.seconds, 3),
    }


def _row(row: Compared) -> dict[str, Any]:
    return {
        "name": row.name,
        "predicted_bytes": row.predicted,
        "measured_bytes": row.measured,
    }


def system_demo_blocks(demo: SystemDemo) -> list[Block]:
    """Each size of a reference system, then what one more adds."""
    runs = Table(
        columns=(
            Column(name="training"),
            Column(name="size", number=True),
            Column(name="predicted", number=True),
            Column(name="at most", number=True),
            Column(name="measured", number=True),
            Column(name="error", number=True),
            Column(name="seconds", number=True),
        ),
        rows=tuple(
            (
                run.training,
                f"{run.knob} {run.value:,}",
                format_bytes(run.predicted),
                format_bytes(run.upper),
                format_bytes(run.measured),
                f"{run.error:+.1%}",
                f"{run.seconds:.0f}",
            )
            for run in demo.runs
        ),
    )
    lines = Table(
        columns=(
            Column(name="training"),
            Column(name="each, predicted", number=True),
            Column(name="each, measured", number=True),
            Column(name="fixed, measured", number=True),
        ),
        rows=tuple(
            (name, _each(predicted), _each(measured), _fixed(measured))
            for name, (predicted, measured) in demo.lines.items()
        ),
    )
    return [
        Heading(text=f"The {demo.system} system: predicted beside measured"),
        runs,
        Heading(text="What each one more adds"),
        lines,
        Text(text=f"The whole demonstration took {demo.seconds:.0f} s."),
    ]


def _each(line: Line | None) -> str:
    return "-" if line is None else format_bytes(round(line.bytes_per_unit))


def _fixed(line: Line | None) -> str:
    return "-" if line is None else format_bytes(line.fixed_bytes)


def system_demo_json(demo: SystemDemo) -> dict[str, Any]:
    """The comparison for programs."""
    return {
        "schema": 1,
        "kind": "demo",
        "system": demo.system,
        "runs": [
            {
                "training": run.training,
                "knob": run.knob,
                "value": run.value,
                "predicted_bytes": run.predicted,
                "upper_bytes": run.upper,
                "measured_bytes": run.measured,
                "seconds": round(run.seconds, 3),
            }
            for run in demo.runs
        ],
        "bytes_per_unit": {
            name: {
                "predicted": predicted and predicted.bytes_per_unit,
                "measured": measured and measured.bytes_per_unit,
            }
            for name, (predicted, measured) in demo.lines.items()
        },
        "seconds": round(demo.seconds, 3),
    }
