"""What an earlier learn() leaves to a later one, row by row."""

from __future__ import annotations

from memfit.analyses.earlier_learn import left_by, with_row
from memfit.model import EvidenceKind, Kind, Ledger, const, knob
from tests.samples import row

FIRST = Ledger(
    components=(
        row("libraries", Kind.BASE, const(1000), ("start", "build", "rollout", "update")),
        row("first use", Kind.BASE, const(200), ("rollout", "update")),
        row("parameters", Kind.PARAMETERS, const(70), ("build", "rollout", "update")),
        row("buffer", Kind.BUFFER, knob("n_steps") * 5, ("rollout", "update")),
        row("optimizer", Kind.OPTIMIZER, const(30), ("rollout", "update")),
        row("malloc", Kind.FRAGMENTATION, const(8), ("rollout", "update")),
        row("minibatch", Kind.COPIES, const(900), ("update",)),
    ),
    knobs={"n_steps": 10},
)
LATER = Ledger(
    components=(
        row("libraries", Kind.BASE, const(1000), ("start", "build", "rollout", "update")),
        row("minibatch", Kind.COPIES, const(40), ("update.minibatch",)),
    )
)


def test_a_model_that_is_still_there_keeps_what_it_got_by_training() -> None:
    """Its buffer of 50, its optimizer's 30, and malloc's 8; its parameters came when it was built.

    What first use of the libraries costs is in the later plan already.
    """
    left = left_by(FIRST, alive=True)
    assert left.size.evaluate({}) == 50 + 30 + 8
    assert left.kind is Kind.BUFFER
    assert left.evidence.kind is EvidenceKind.PROBED


def test_of_a_model_that_is_gone_only_what_malloc_keeps_is_left() -> None:
    left = left_by(FIRST, alive=False)
    assert left.size.evaluate({}) == 8
    assert left.kind is Kind.FRAGMENTATION


def test_the_row_is_alive_from_when_the_later_model_is_built() -> None:
    ledger = with_row(LATER, left_by(FIRST, alive=True))
    assert ledger.moment_bytes == {
        "start": 1000,
        "build": 1088,
        "rollout": 1088,
        "update.minibatch": 1128,
    }


def test_the_row_brings_no_phase_that_the_later_run_does_not_have() -> None:
    ledger = with_row(LATER, left_by(FIRST, alive=True))
    assert ledger.moments == LATER.moments
    assert ledger.components[-1].phases == ("build", "rollout", "update")
