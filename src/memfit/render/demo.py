"""A demonstration as blocks and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memfit.model import Compared, Demo, Line, SystemDemo
from memfit.render.blocks import Block, Text, numbers, section
from memfit.render.plan import plan_blocks
from memfit.render.result_json import SCHEMA, picked
from memfit.units import format_bytes


def demo_blocks(demo: Demo) -> list[Block]:
    """The plan, then predicted beside measured."""
    title = f"Predicted beside measured, after {demo.updates} real updates"
    return [
        *plan_blocks(demo.plan),
        *_compared(title, "phase", [*demo.phases, demo.peak]),
        *_compared("Row by row, in the training process", "row", demo.rows),
        Text(f"The whole demonstration took {demo.seconds:.0f} s."),
    ]


def _compared(title: str, first: str, rows: Sequence[Compared]) -> list[Block]:
    return section(
        title,
        (first, *numbers("predicted", "measured", "error")),
        ((r.name, format_bytes(r.predicted), format_bytes(r.measured), _error(r)) for r in rows),
    )


def _error(row: Compared) -> str:
    if not row.measured:
        return "-"
    return f"{(row.predicted - row.measured) / row.measured:+.1%}"


def demo_json(demo: Demo) -> dict[str, Any]:
    """The comparison for programs."""
    return {
        "schema": SCHEMA,
        "kind": "demo",
        "target": demo.plan.target,
        "updates": demo.updates,
        "peak": _row(demo.peak),
        "phases": [_row(row) for row in demo.phases],
        "rows": [_row(row) for row in demo.rows],
        "seconds": round(demo.seconds, 3),
    }


def _row(row: Compared) -> dict[str, Any]:
    return picked(row, "name", predicted_bytes="predicted", measured_bytes="measured")


def system_demo_blocks(demo: SystemDemo) -> list[Block]:
    """Each size of a reference system, then what one more adds."""
    runs = (
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
    )
    lines = (
        (name, _each(predicted), _each(measured), _fixed(measured))
        for name, (predicted, measured) in demo.lines.items()
    )
    sizes = numbers("size", "predicted", "at most", "measured", "error", "seconds")
    slopes = numbers("each, predicted", "each, measured", "fixed, measured")
    title = f"The {demo.system} system: predicted beside measured"
    return [
        *section(title, ("training", *sizes), runs),
        *section("What each one more adds", ("training", *slopes), lines),
        Text(f"The whole demonstration took {demo.seconds:.0f} s."),
    ]


def _each(line: Line | None) -> str:
    return "-" if line is None else format_bytes(round(line.bytes_per_unit))


def _fixed(line: Line | None) -> str:
    return "-" if line is None else format_bytes(line.fixed_bytes)


def system_demo_json(demo: SystemDemo) -> dict[str, Any]:
    """The comparison for programs."""
    bytes_of = {
        "predicted_bytes": "predicted",
        "upper_bytes": "upper",
        "measured_bytes": "measured",
    }
    return {
        "schema": SCHEMA,
        "kind": "demo",
        "system": demo.system,
        "runs": [
            {
                **picked(run, "training", "knob", "value", **bytes_of),
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
