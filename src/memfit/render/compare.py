"""A comparison as blocks and as JSON."""

from __future__ import annotations

from typing import Any

from memfit.model import Comparison
from memfit.render.blocks import Block, Column, Heading, Table, Text, Tone
from memfit.render.component_json import SCHEMA
from memfit.units import format_bytes

_ROWS = 30


def compare_blocks(comparison: Comparison) -> list[Block]:
    """The totals, and the rows that changed most."""
    grew = comparison.bytes > 0
    rows = tuple(
        (r.name, format_bytes(r.bytes), format_bytes(r.before), format_bytes(r.after))
        for r in comparison.rows[:_ROWS]
    )
    blocks: list[Block] = [Text(text=_totals(comparison), tone=Tone.BAD if grew else Tone.GOOD)]
    if rows:
        blocks += [
            Heading(text="What changed"),
            Table(
                columns=(
                    Column(name="component", code=True, whole=True),
                    Column(name="change", number=True),
                    Column(name="before", number=True),
                    Column(name="after", number=True),
                ),
                rows=rows,
            ),
        ]
    if more := len(comparison.rows) - len(rows):
        blocks.append(Text(text=f"and {more:,} rows with smaller changes", tone=Tone.MUTED))
    return blocks + [Text(text=f"note: {note}", tone=Tone.MUTED) for note in comparison.notes]


def _totals(comparison: Comparison) -> str:
    now = format_bytes(comparison.after_bytes)
    if not comparison.bytes:
        return f"{comparison.after} needs as much as {comparison.before}: {now}"
    word = "grew" if comparison.bytes > 0 else "shrank"
    return (
        f"{comparison.after} {word} by {format_bytes(abs(comparison.bytes))} "
        f"({comparison.share:+.1%}) against {comparison.before}: "
        f"{format_bytes(comparison.before_bytes)}, now {now}"
    )


def compare_json(comparison: Comparison) -> dict[str, Any]:
    """What `memfit compare --format json` prints."""
    return {
        "schema": SCHEMA,
        "kind": "compare",
        "before": comparison.before,
        "after": comparison.after,
        "before_bytes": comparison.before_bytes,
        "after_bytes": comparison.after_bytes,
        "grew_bytes": comparison.bytes,
        "grew_share": round(comparison.share, 6),
        "components": [
            {"name": r.name, "before_bytes": r.before, "after_bytes": r.after, "bytes": r.bytes}
            for r in comparison.rows
        ],
        "notes": list(comparison.notes),
    }
