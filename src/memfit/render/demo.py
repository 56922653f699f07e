"""A demonstration as blocks and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memfit.model import Compared, Demo
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
