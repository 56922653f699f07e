"""What grew and what shrank between two results, by row."""

from __future__ import annotations

from collections.abc import Mapping

from memfit.model import Changed, Comparison


def compare(
    before: tuple[str, int, Mapping[str, int]], after: tuple[str, int, Mapping[str, int]]
) -> Comparison:
    """Two results, each as its name, its peak and its rows."""
    names = {**before[2], **after[2]}
    rows = [
        Changed(name=name, before=before[2].get(name, 0), after=after[2].get(name, 0))
        for name in names
    ]
    return Comparison(
        before=before[0],
        after=after[0],
        before_bytes=before[1],
        after_bytes=after[1],
        rows=tuple(sorted((r for r in rows if r.bytes), key=lambda r: -abs(r.bytes))),
    )
