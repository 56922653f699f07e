"""A row of a ledger as JSON, the same for every command."""

from __future__ import annotations

from typing import Any

from memfit.model import Component, Ledger

SCHEMA = 1


def component_json(ledger: Ledger, component: Component, per: str = "") -> dict[str, Any]:
    """One component; with `per`, also what one more of that knob would add."""
    row: dict[str, Any] = {
        "name": component.name,
        "kind": component.kind.value,
        "place": component.place.value,
        "bytes": ledger.bytes_of(component),
        "formula": str(component.size),
        "phases": list(component.phases),
        "evidence": {"kind": component.evidence.kind.value, "where": component.evidence.where},
    }
    if per:
        row["one_more_bytes"] = ledger.one_more(component, per)
    if component.reserved is not None:
        reserved = component.reserved.evaluate(ledger.knobs)
        if reserved != row["bytes"]:
            row["reserved_bytes"] = reserved
    return row
