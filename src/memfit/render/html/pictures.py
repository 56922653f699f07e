"""All pictures that a result has: each looks for its own data, whatever the command was."""

from __future__ import annotations

from collections.abc import Iterator

from memfit.render.html import (
    advice_pictures,
    card_pictures,
    compared_pictures,
    ledger_pictures,
    measured_pictures,
    profile_pictures,
    time_pictures,
    tree_pictures,
)
from memfit.render.html.figure import Data, Picture

_MAKERS = (
    advice_pictures.before_and_after,
    time_pictures.timeline,
    compared_pictures.courses,
    compared_pictures.gap,
    measured_pictures.beside,
    measured_pictures.systems,
    measured_pictures.sweep,
    measured_pictures.jobs,
    profile_pictures.in_use,
    profile_pictures.costs,
    card_pictures.cards,
    ledger_pictures.moments,
    ledger_pictures.composition,
    tree_pictures.grown,
    tree_pictures.processes,
    measured_pictures.capacity,
    advice_pictures.savings,
    tree_pictures.findings,
)
_PARTS = ("course", "optimize", "plan")  # results within a result


def pictures(data: Data) -> Iterator[Picture]:
    """The pictures of a result, in the order of the page; those of results in it come last.

    There is one of each: what moves on a page is known by its key.
    """
    drawn: set[str] = set()
    for make in _MAKERS:
        for picture in make(data):
            drawn.add(picture.key)
            yield picture
    for part in _PARTS:
        inner = data.get(part)
        for picture in pictures(inner) if isinstance(inner, dict) else ():
            if picture.key not in drawn:
                drawn.add(picture.key)
                yield picture
