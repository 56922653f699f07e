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


def reserved(ledger: Ledger, rows: Iterable[Component]) -> int:
    """The address space of some rows, resident or not."""
    return sum((c.reserved or c.size).evaluate(ledger.knobs) for c in rows)


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
