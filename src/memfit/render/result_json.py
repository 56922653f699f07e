"""What the JSON of every command has in common: its schema, fields of nouns, rows of a ledger."""

from __future__ import annotations

from typing import Any

from memfit.model import Component, Ledger
from memfit.model.json_loader import to_json

SCHEMA = 1


def picked(noun: Any, *same: str, **renamed: str) -> dict[str, Any]:
    """Some fields of a noun, by their own names, then under others (`rss_bytes="rss"`)."""
    fields = {**dict(zip(same, same, strict=True)), **renamed}
    return {name: to_json(getattr(noun, field)) for name, field in fields.items()}


def component_json(ledger: Ledger, component: Component, per: str = "") -> dict[str, Any]:
    """One component; with `per`, also what one more of that knob would add."""
    row = picked(component, "name", "kind", "place")
    row["bytes"] = ledger.bytes_of(component)
    row["formula"] = str(component.size)
    row |= picked(component, "phases", "evidence")
    if per:
        row["one_more_bytes"] = ledger.one_more(component, per)
    if component.reserved is not None:
        reserved = component.reserved.evaluate(ledger.knobs)
        if reserved != row["bytes"]:
            row["reserved_bytes"] = reserved
    return row
