"""How many nodes a run takes, and what each holds."""

from __future__ import annotations

from typing import Any

from memfit.model import NodesPlan, Plan
from memfit.render.blocks import Block, Text, Tone, muted, names, numbers, section
from memfit.render.plan import plan_json
from memfit.render.result_json import component_json, picked
from memfit.units import format_bytes

_LEAST = 2**20


def nodes_blocks(plan: Plan, nodes: NodesPlan) -> list[Block]:
    """The number of nodes, and one of them by its parts, rows and evidence."""
    peak, upper = format_bytes(nodes.peak_bytes), format_bytes(nodes.upper_bytes)
    ledger = nodes.ledger
    alive = [c for c in ledger.components if c.alive_in(ledger.peak.moment)]
    rows = sorted(alive, key=lambda c: -ledger.bytes_of(c))
    several = "nodes" if nodes.count != 1 else "node"
    return [
        Text(
            f"{nodes.count:,} {several} of {format_bytes(nodes.node_bytes)}: each has "
            f"{nodes.each:,} of {nodes.whole:,} {nodes.knob}, and peaks at {peak} "
            f"(at most {upper})",
            Tone.GOOD,
        ),
        *section(
            f"What a node holds at its peak, in {ledger.peak.moment}",
            ("part", *numbers("bytes", "size")),
            [_line(part, amount) for part, amount in nodes.parts.items()],
            total=_line("all", nodes.peak_bytes),
        ),
        *section(
            "How that is known",
            ("evidence", *numbers("bytes", "size")),
            [_line(kind, amount) for kind, amount in nodes.evidence.items()],
        ),
        *section(
            "Its rows",
            (names("component"), *numbers("size"), "formula (bytes)", "evidence"),
            [
                (c.name, format_bytes(ledger.bytes_of(c)), str(c.size), str(c.evidence))
                for c in rows
                if ledger.bytes_of(c) >= _LEAST
            ],
        ),
        *muted(
            [
                f"{plan.target}: on one machine it would peak at {format_bytes(plan.peak_bytes)}",
                *(f"note: {note}" for note in (*nodes.notes, *plan.notes)),
            ]
        ),
    ]


def _line(what: str, amount: int) -> tuple[str, str, str]:
    return what, f"{amount:,}", format_bytes(amount)


def nodes_json(plan: Plan, nodes: NodesPlan) -> dict[str, Any]:
    """A plan's JSON, and the nodes."""
    ledger = nodes.ledger
    found = picked(nodes, "node_bytes", "knob", "whole", "count", "each", "peak_bytes")
    found |= picked(nodes, "upper_bytes", "parts", "evidence", "notes")
    found["components"] = [component_json(ledger, c) for c in ledger.components]
    return {**plan_json(plan), "nodes": found}
