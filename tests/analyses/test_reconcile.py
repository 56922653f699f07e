"""A ledger brought in line with a rehearsal: every figure is small enough to check by hand."""

from __future__ import annotations

from memfit.analyses.reconcile import extend, reconcile
from memfit.model import Component, EvidenceKind, Kind, Ledger, Rehearsed, const, knob
from tests.samples import row

SCALE = {"batch_size": 64, "n_steps": 400}
ALWAYS = ("start", "rollout", "update")

BASE = row("base", Kind.BASE, const(100), ALWAYS)
BUFFER = row("buffer", Kind.BUFFER, knob("n_steps") * 5, ("rollout", "update"))
WORKERS = row("workers", Kind.WORKER, const(7), ("rollout", "update"))
FLATTEN = row("flatten", Kind.COPIES, const(30), ("update.flatten",))
MALLOC = row("malloc", Kind.FRAGMENTATION, const(20), ("update.minibatch",))
SCRATCH = row("scratch", Kind.SCRATCH, const(40), ("update.minibatch",))


def ledger(*more: Component) -> Ledger:
    """Without workers: start 100, rollout 150, update.flatten 180 with its row."""
    return Ledger(components=(BASE, BUFFER, WORKERS, *more), knobs={"n_steps": 10})


def at(batch: int, rows: int, **moments: int) -> Rehearsed:
    """A rehearsal with so many samples in a minibatch and so many rows in its buffer."""
    return Rehearsed(knobs={"batch_size": batch, "n_steps": rows}, moments=moments)


def seen(**moments: int) -> list[Rehearsed]:
    """A rehearsal at full size."""
    return [at(64, 400, **moments)]


def sizes(of: Ledger) -> dict[str, int]:
    return {c.name: of.bytes_of(c) for c in of.components}


def test_what_was_seen_above_the_rows_goes_to_the_allocator() -> None:
    """The minibatch is the highest moment with 210: 40 more were seen, which malloc keeps."""
    before = ledger(FLATTEN, MALLOC, SCRATCH)
    after = reconcile(before, seen(update=250), SCALE)
    assert sizes(after) == {**sizes(before), "malloc": 60}
    assert after.moment_bytes["update.minibatch"] == 250 + 7
    assert after.moment_bytes["update.flatten"] == 180 + 7
    changed = next(c for c in after.components if c.name == "malloc")
    assert changed.evidence.kind is EvidenceKind.MEASURED


def test_where_less_was_seen_the_allocator_gives_way_before_scratch() -> None:
    """50 too much: malloc's 20 first, then 30 of the scratch; what is known for sure stays."""
    before = ledger(FLATTEN, MALLOC, SCRATCH)
    after = reconcile(before, seen(update=160), SCALE)
    assert sizes(after) == {**sizes(before), "malloc": 0, "scratch": 10}
    assert after.moment_bytes["update.minibatch"] == 160 + 7
    assert after.moment_bytes["update.flatten"] == 180 + 7


def test_what_no_row_can_take_gets_a_row_of_its_own() -> None:
    after = reconcile(ledger(), seen(rollout=163), SCALE)
    added = after.components[-1]
    assert (added.name, added.kind, added.phases) == (
        "unattributed.rollout",
        Kind.UNATTRIBUTED,
        ("rollout",),
    )
    assert after.bytes_of(added) == 13
    assert after.moment_bytes == {"start": 100, "rollout": 163 + 7, "update": 150 + 7}


def test_workers_are_no_part_of_what_a_rehearsal_reads() -> None:
    before = ledger()
    assert reconcile(before, seen(rollout=150, update=150), SCALE) == before


def test_a_phase_that_the_ledger_does_not_have_is_left_out() -> None:
    before = ledger()
    assert reconcile(before, seen(evaluate=10**6), SCALE) == before


def test_a_row_keeps_its_formula_when_it_is_corrected() -> None:
    """One step more is 2 bytes more of malloc's row, before and after."""
    growing = row("malloc", Kind.FRAGMENTATION, knob("n_steps") * 2, ("rollout",))
    after = reconcile(ledger(growing), seen(rollout=200), SCALE)
    assert sizes(after)["malloc"] == 20 + 30
    assert sizes(after.at(n_steps=11))["malloc"] == 22 + 30


def test_smaller_rehearsals_are_extended_in_a_straight_line() -> None:
    """From 100 to 200 rows 40 more; from there to 400 rows 80 more."""
    small = at(16, 100, rollout=1000, update=5000)
    larger = at(32, 200, rollout=1040, update=4990)
    assert extend([small, larger], SCALE) == {"rollout": 1120, "update": 4970}
    assert extend([larger], SCALE) == {"rollout": 1040, "update": 4990}
    after = reconcile(ledger(), [small, larger], SCALE)
    assert after.moment_bytes["rollout"] == 1120 + 7
    assert after.components[-1].evidence.kind is EvidenceKind.PROBED


def test_where_rows_do_not_grow_the_batch_tells_the_distance() -> None:
    small = at(16, 400, update=100)
    larger = at(32, 400, update=116)
    assert extend([small, larger], SCALE) == {"update": 148}


def test_a_rehearsal_at_full_size_is_taken_as_it_is() -> None:
    small = at(16, 100, update=100)
    full = at(64, 400, update=300)
    assert extend([small, full], SCALE) == {"update": 300}
