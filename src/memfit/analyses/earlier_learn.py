"""What a model that was trained before leaves to the run of a later one."""

from __future__ import annotations

from memfit.formulas.shared_rows import BUILT, only, probed
from memfit.model import Component, Kind, Ledger, const, phase_of


def left_by(first: Ledger, *, alive: bool) -> Component:
    """What a trained model still holds while a later one trains.

    Its buffers, gradients and optimizer state, if it is still there; what malloc keeps, in any
    case. What first use of the libraries costs is in the second plan already.
    """
    rows = [c for c in first.components if c.alive_in("rollout") and not c.alive_in("build")]
    kept = [c for c in rows if c.kind is Kind.FRAGMENTATION or (alive and c.kind is not Kind.BASE)]
    where = "the plan of the first learn(): what is alive in its rollout and was not when built"
    return Component(
        name="earlier.learn",
        kind=Kind.BUFFER if alive else Kind.FRAGMENTATION,
        size=const(sum(map(first.bytes_of, kept))),
        phases=BUILT,
        evidence=probed(where),
    )


def with_row(ledger: Ledger, row: Component) -> Ledger:
    """The ledger with one more row, alive in those of its phases that the ledger has."""
    has = {phase_of(moment) for moment in ledger.moments}
    return ledger.with_rows((*ledger.components, only(row, has)))
