"""What grew and what shrank between two results, by row."""

from __future__ import annotations

from collections.abc import Mapping

from memfit.model import Changed, Comparison

Rows = Mapping[str, int]


def changed(before: Rows, after: Rows) -> list[Changed]:
    """The rows that differ."""
    rows = (
        Changed(name=name, before=before.get(name, 0), after=after.get(name, 0))
        for name in {**before, **after}
    )
    return [row for row in rows if row.bytes]


def compare(before: tuple[str, int, Rows], after: tuple[str, int, Rows]) -> Comparison:
    """Two results, each as its name, its peak and its rows."""
    return Comparison(
        before=before[0],
        after=after[0],
        before_bytes=before[1],
        after_bytes=after[1],
        rows=tuple(sorted(changed(before[2], after[2]), key=lambda r: -abs(r.bytes))),
    )
