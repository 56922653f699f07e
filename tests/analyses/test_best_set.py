"""Which fixes are made together."""

from __future__ import annotations

from dataclasses import replace

from memfit.analyses.best_set import best_set, candidates, expected, is_usable, sets_for
from memfit.checks import wanted
from memfit.model import Changes
from memfit.units import GIB, MIB
from tests.checks.runs import dqn
from tests.samples_optimized import HALF, LIGHT, PIECES, WINDOWS


def test_what_changes_training_or_failed_is_in_no_set() -> None:
    assert best_set([HALF, LIGHT, WINDOWS, PIECES], GIB) == [PIECES, WINDOWS]


def test_a_safe_fix_that_was_not_identical_is_in_no_set() -> None:
    broken = replace(WINDOWS, identical=False)
    assert not is_usable(broken)
    assert is_usable(replace(WINDOWS, identical=None))


def test_of_two_for_the_same_place_the_better_one_is_made() -> None:
    worse = replace(WINDOWS, measured_bytes=20 * MIB)
    assert best_set([worse, WINDOWS], GIB) == [WINDOWS]


def test_settings_that_save_little_are_left_out_and_parts_are_not() -> None:
    little = replace(WINDOWS, measured_bytes=0)
    settings = replace(little, changes=Changes(variables={"MALLOC_ARENA_MAX": "2"}))
    assert best_set([little, settings], GIB) == [little]


def test_sets_come_cheapest_first_and_never_with_two_for_one_place() -> None:
    other = replace(WINDOWS, measured_bytes=MIB)
    found = [tuple(one.code for one in some) for some in sets_for([WINDOWS, other, PIECES])]
    assert found[:2] == [("MF011",), ("MF011",)]  # safe ones before others
    assert ("MF011", "MF011") not in found and len(found) == 5


def test_savings_are_expected_to_add_up_at_most() -> None:
    assert expected(GIB, [WINDOWS, PIECES]) == GIB - 500 * MIB


def test_candidates_are_those_that_a_program_can_make() -> None:
    spec, ledger = dqn()
    codes = wanted((), ())
    found = candidates(spec, ledger, GIB, codes, safe_only=False)
    assert found and all(fix.changes for _, fix in found)
    safe = candidates(spec, ledger, GIB, codes, safe_only=True)
    assert len(safe) < len(found) and all(fix.safe for _, fix in safe)
    assert len({str(fix.changes) for _, fix in found}) == len(found)
