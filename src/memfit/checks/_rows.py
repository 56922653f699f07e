"""What several checks ask of a ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from memfit.model import Component, Ledger, Size


def row(ledger: Ledger, name: str) -> Component | None:
    """The row of that name, if the ledger has one."""
    return next((c for c in ledger.components if c.name == name), None)


def total(ledger: Ledger, rows: Iterable[Component]) -> int:
    """The bytes of some rows."""
    return sum(ledger.bytes_of(c) for c in rows)


def named(ledger: Ledger, names: Iterable[str]) -> int:
    """The bytes of the rows that have these names."""
    rows = ledger.row_bytes
    return sum(rows.get(name, 0) for name in names)


def without(ledger: Ledger, *names: str) -> Ledger:
    """The ledger of the same run without some rows."""
    return ledger.with_rows(c for c in ledger.components if c.name not in names)


def resized(ledger: Ledger, names: Iterable[str], change: Callable[[Size], Size]) -> Ledger:
    """The ledger of the same run with some rows of another size."""
    wanted = set(names)

    def changed(c: Component) -> Component:
        if c.name not in wanted:
            return c
        held = None if c.reserved is None else change(c.reserved)
        return replace(c, size=change(c.size), reserved=held)

    return ledger.with_rows(map(changed, ledger.components))
