"""An upper bound of a run's peak that a scheduler can rely on."""

from __future__ import annotations

from memfit.model import EvidenceKind, Kind, Ledger

# How far a row may be off, in thousandths, by how it is known. Runs of the same script differ by
# about 1 % of their own peak; what malloc keeps differs more.
_SPREAD = {
    EvidenceKind.MEASURED: 25,
    EvidenceKind.DERIVED: 10,
    EvidenceKind.PROBED: 150,
    EvidenceKind.ASSUMED: 500,
}
_FLOOR = 8 * 2**20


def upper_bytes(ledger: Ledger) -> int:
    """The peak with every row at the far end of its spread."""
    bound = 0
    for moment in ledger.moments:
        total = _FLOOR
        for c in ledger.components:
            if c.alive_in(moment):
                spread = _SPREAD[c.evidence.kind]
                if c.kind in (Kind.ACTIVATIONS, Kind.COPIES):
                    spread = max(spread, 50)
                total += ledger.bytes_of(c) * (1000 + spread) // 1000
        bound = max(bound, total)
    return bound
