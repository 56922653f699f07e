"""A comparison as blocks and as JSON."""

from __future__ import annotations

from typing import Any

from memfit.model import Comparison
from memfit.model.json_loader import to_json
from memfit.render.blocks import Block, Text, Tone, muted, names, numbers, section
from memfit.render.result_json import SCHEMA, picked
from memfit.units import format_bytes, format_change

_ROWS = 30


def compare_blocks(comparison: Comparison) -> list[Block]:
    """The totals, and the rows that changed most."""
    grew = comparison.bytes > 0
    rows = [
        (r.name, format_change(r.bytes), format_bytes(r.before), format_bytes(r.after))
        for r in comparison.rows[:_ROWS]
    ]
    blocks: list[Block] = [Text(_totals(comparison), Tone.BAD if grew else Tone.GOOD)]
    if rows:
        columns = (names("component"), *numbers("change", "before", "after"))
        total = (
            "total",
            format_change(comparison.bytes),
            format_bytes(comparison.before_bytes),
            format_bytes(comparison.after_bytes),
        )
        blocks += section("What changed", columns, rows, total=total)
    if more := len(comparison.rows) - len(rows):
        blocks += muted([f"and {more:,} rows with smaller changes"])
    return blocks + muted(f"note: {note}" for note in comparison.notes)


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
        **picked(comparison, "before", "after", "before_bytes", "after_bytes", grew_bytes="bytes"),
        "grew_share": round(comparison.share, 6),
        "components": [
            picked(row, "name", before_bytes="before", after_bytes="after", bytes="bytes")
            for row in comparison.rows
        ],
        "before_course": to_json(comparison.before_course),
        "after_course": to_json(comparison.after_course),
        "notes": list(comparison.notes),
    }
