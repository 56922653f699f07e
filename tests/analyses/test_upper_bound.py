"""The upper bound of a peak, with so much of what is in doubt added, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memfit.analyses.upper_bound import REHEARSED as SEEN
from memfit.analyses.upper_bound import (
    SURVEYED,
    TRIED,
    Margin,
    doubt_bytes,
    in_doubt,
    upper_bytes,
)
from memfit.model import EvidenceKind, Kind, Ledger, Readings, Rehearsed, const
from memfit.model.trial import TrialEnd, TrialReading
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


def bound(ledger: Ledger, readings: Readings, **weights: int) -> int:
    """The bound of a ledger of one moment, with these thousandths of what is in doubt."""
    margin = Margin(floor=0, thousandths={**dict.fromkeys(SURVEYED.thousandths, 0), **weights})
    return ledger.peak.bytes + margin.of(doubt_bytes(ledger, readings, ledger.peak.moment))


def test_the_less_is_known_of_a_row_the_more_it_may_grow() -> None:
    worst_last = ("derived", "measured", "probed", "assumed")
    for margin in (SURVEYED, SEEN, TRIED):
        weights = [margin.thousandths[kind] for kind in worst_last]
        assert weights == sorted(weights)


@pytest.mark.parametrize("kind", list(EvidenceKind))
def test_a_row_adds_by_how_it_is_known(kind: EvidenceKind) -> None:
    assert bound(one(kind), READINGS, **{kind: 30}) == 1030
    others = {other: 30 for other in EvidenceKind if other is not kind}
    assert bound(one(kind), READINGS, **others) == 1000


def test_what_malloc_adds_is_a_cause_of_its_own() -> None:
    slack = row("s", Kind.FRAGMENTATION, const(1000), ("update",), evidence=EvidenceKind.PROBED)
    assert bound(Ledger(components=(slack,)), READINGS, slack=100, probed=500) == 1100


def test_the_bound_is_the_largest_of_the_moments_bounds_and_not_that_of_the_peak() -> None:
    """The rollout is the peak with 1,100 MiB; the update of 1,000 that is assumed may be more."""
    ledger = Ledger(
        components=(
            *one(EvidenceKind.DERIVED, 1100 * MIB, "rollout").components,
            *one(EvidenceKind.ASSUMED, 1000 * MIB, "update").components,
        )
    )
    assert ledger.peak.moment == "rollout"
    update = {**dict.fromkeys(SURVEYED.thousandths, 0), "assumed": 1000 * MIB}
    assert upper_bytes(ledger, READINGS) == 1000 * MIB + SURVEYED.of(update)


def test_rows_that_are_alive_together_are_added_up() -> None:
    ledger = Ledger(
        components=(
            *one(EvidenceKind.DERIVED, 2000).components,
            *one(EvidenceKind.PROBED, 300).components,
        )
    )
    assert bound(ledger, READINGS, derived=10, probed=200) == 2020 + 360


def test_what_single_replays_went_further_is_added_in_their_moment() -> None:
    readings = Readings(stopped=0, warm=0, unit=64, growth_spread={"update": 500})
    assert bound(one(EvidenceKind.DERIVED), readings, replay_spread=1000) == 1500
    rollout = one(EvidenceKind.DERIVED, phase="rollout")
    assert bound(rollout, readings, replay_spread=1000) == 1000


def test_a_rehearsal_has_a_margin_of_its_own() -> None:
    ledger = one(EvidenceKind.DERIVED, 100 * MIB)
    doubt = doubt_bytes(ledger, REHEARSED, "update")
    assert upper_bytes(ledger, REHEARSED) == 100 * MIB + SEEN.of(doubt)
    assert SEEN.of(doubt) < SURVEYED.of(doubt)


def test_what_grows_in_an_unknown_way_may_grow_in_updates() -> None:
    """A rehearsal has seen it."""
    readings = Readings(stopped=0, warm=0, unit=64, unmatched=100)
    assert bound(one(EvidenceKind.DERIVED), readings, unmatched=1000) == 1100
    assert bound(one(EvidenceKind.DERIVED, phase="rollout"), readings, unmatched=1000) == 1000
    assert SEEN.thousandths["unmatched"] == 0


def test_what_comes_and_goes_in_a_trial_was_only_sampled() -> None:
    trial = TrialReading(updates=4, cycles=2, env_steps=8, seconds=1.0, ended=TrialEnd.SEEN)
    tried = replace(READINGS, trial=trial)
    passing = row("a", Kind.ACTIVATIONS, const(1000), ("update",), evidence=EvidenceKind.MEASURED)
    ledger = Ledger(components=(passing, *one(EvidenceKind.MEASURED, 300).components))
    assert doubt_bytes(ledger, tried, "update")["probed"] == 1000
    assert doubt_bytes(ledger, tried, "update")["measured"] == 300
    assert doubt_bytes(ledger, READINGS, "update")["measured"] == 1300


@pytest.mark.parametrize(("spread", "doubtful"), [(50, False), (51, True)])
def test_a_plan_is_in_doubt_about_more_than_a_twentieth(spread: int, doubtful: bool) -> None:
    readings = Readings(stopped=0, warm=0, unit=64, growth_spread={"update": spread})
    assert in_doubt(one(EvidenceKind.DERIVED), readings) is doubtful
    rehearsed = replace(readings, rehearsed=(Rehearsed(knobs={}, moments={}),))
    assert not in_doubt(one(EvidenceKind.DERIVED), rehearsed)


@pytest.mark.parametrize(("kept", "doubtful"), [(240, False), (260, True)])
def test_a_fifth_of_what_malloc_keeps_is_in_doubt(kept: int, doubtful: bool) -> None:
    held = one(EvidenceKind.DERIVED, 1000 - kept).components
    slack = row("b", Kind.FRAGMENTATION, const(kept), ("update",), evidence=EvidenceKind.PROBED)
    ledger = Ledger(components=(*held, slack))
    assert in_doubt(ledger, READINGS) is doubtful


def test_a_large_run_is_not_rehearsed_for_what_malloc_keeps() -> None:
    kept = row("b", Kind.FRAGMENTATION, const(2**31 + 1), ("update",), evidence=EvidenceKind.PROBED)
    assert not in_doubt(Ledger(components=(kept,)), READINGS)


def test_a_calibrated_factor_scales_all_but_the_floor() -> None:
    margin = Margin(floor=7, thousandths={"slack": 500}, factor=1.5)
    assert margin.of({"slack": 100}) == 7 + 75


def test_a_trial_allows_more_than_a_rehearsal() -> None:
    trial = TrialReading(updates=4, cycles=2, env_steps=8, seconds=1.0, ended=TrialEnd.SEEN)
    tried = replace(READINGS, trial=trial)
    rehearsed = replace(READINGS, rehearsed=REHEARSED.rehearsed)
    ledger = one(EvidenceKind.MEASURED, 1000 * MIB)
    assert upper_bytes(ledger, tried) > upper_bytes(ledger, rehearsed)
