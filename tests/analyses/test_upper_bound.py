"""The upper bound of a peak, with every row at the far end of its spread, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memfit.analyses.upper_bound import upper_bytes
from memfit.model import EvidenceKind, Kind, Ledger, Readings, Rehearsed, Slope, const
from memfit.units import MIB
from tests.samples import row

READINGS = Readings(stopped=0, warm=0, unit=64)
REHEARSED = Readings(
    stopped=0,
    warm=0,
    unit=64,
    growth_spread={"update": 500},
    rehearsed=(Rehearsed(knobs={}, moments={}),),
)


def one(kind: EvidenceKind, size: int = 1000, phase: str = "update") -> Ledger:
    return Ledger(components=(row("a", Kind.BUFFER, const(size), (phase,), evidence=kind),))


@pytest.mark.parametrize(
    ("kind", "at_most"),
    [
        (EvidenceKind.DERIVED, 1010),
        (EvidenceKind.MEASURED, 1020),
        (EvidenceKind.PROBED, 1200),
        (EvidenceKind.ASSUMED, 1500),
    ],
)
def test_the_less_is_known_of_a_row_the_more_it_may_grow(kind: EvidenceKind, at_most: int) -> None:
    assert upper_bytes(one(kind), READINGS) == 8 * MIB + at_most


def test_the_bound_is_the_largest_of_the_moments_bounds_and_not_that_of_the_peak() -> None:
    """The rollout is the peak with 1100; the update of 900 may come to 1350."""
    ledger = Ledger(
        components=(
            *one(EvidenceKind.DERIVED, 1100, "rollout").components,
            *one(EvidenceKind.ASSUMED, 900, "update").components,
        )
    )
    assert ledger.peak.moment == "rollout"
    assert upper_bytes(ledger, READINGS) == 8 * MIB + 1350


def test_rows_that_are_alive_together_are_added_up() -> None:
    ledger = Ledger(
        components=(
            *one(EvidenceKind.DERIVED, 2000).components,
            *one(EvidenceKind.PROBED, 300).components,
        )
    )
    assert upper_bytes(ledger, READINGS) == 8 * MIB + 2020 + 360


def test_what_single_replays_went_further_is_added_in_their_moment() -> None:
    readings = Readings(stopped=0, warm=0, unit=64, growth_spread={"update": 500})
    assert upper_bytes(one(EvidenceKind.DERIVED), readings) == 8 * MIB + 1010 + 500
    assert upper_bytes(one(EvidenceKind.DERIVED, phase="rollout"), readings) == 8 * MIB + 1010


def test_a_rehearsal_halves_what_chance_may_add() -> None:
    assert upper_bytes(one(EvidenceKind.DERIVED), REHEARSED) == 6 * MIB + 1010 + 250


def test_what_grows_in_an_unknown_way_may_be_there_once_more() -> None:
    """A tenth of the 1,000 bytes that an update of 64 samples has; a rehearsal has seen it."""
    alive = Slope(fixed=360, per_unit=10)
    readings = Readings(stopped=0, warm=0, unit=64, live=alive, matched_share=0.9)
    assert upper_bytes(one(EvidenceKind.DERIVED), readings) == 8 * MIB + 1010 + 100
    assert upper_bytes(one(EvidenceKind.DERIVED, phase="rollout"), readings) == 8 * MIB + 1010
    rehearsed = replace(readings, rehearsed=(Rehearsed(knobs={}, moments={}),))
    assert upper_bytes(one(EvidenceKind.DERIVED), rehearsed) == 6 * MIB + 1010
