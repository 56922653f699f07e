"""An upper bound of a run's peak that a scheduler can rely on."""

from __future__ import annotations

from memfit.model import EvidenceKind, Ledger, Readings, phase_of

# How far a row may be off, in thousandths, by how it is known. Runs of the same script differ by
# about 1 % of their own peak; what is extrapolated differs more.
_SPREAD = {
    EvidenceKind.MEASURED: 20,
    EvidenceKind.DERIVED: 10,
    EvidenceKind.PROBED: 200,
    EvidenceKind.ASSUMED: 500,
}
# What two runs of the same small script differ by; a rehearsal has seen half of that.
_FLOOR, _REHEARSED_FLOOR = 8 * 2**20, 6 * 2**20


def upper_bytes(ledger: Ledger, readings: Readings) -> int:
    """The peak with every row at the far end of its spread."""
    bound = 0
    unmatched = _unmatched(readings)
    floor = _REHEARSED_FLOOR if readings.rehearsed else _FLOOR
    for moment in ledger.moments:
        total = floor + _replay_spread(moment, readings)
        total += unmatched if phase_of(moment) == "update" else 0
        for c in ledger.components:
            if c.alive_in(moment):
                total += ledger.bytes_of(c) * (1000 + _SPREAD[c.evidence.kind]) // 1000
        bound = max(bound, total)
    return bound


def _unmatched(readings: Readings) -> int:
    """The part of an update whose growth with the batch is not known: it may be there once more.

    A rehearsal has seen it.
    """
    if readings.rehearsed:
        return 0
    return round((1 - readings.matched_share) * readings.live.at(readings.unit))


def _replay_spread(moment: str, readings: Readings) -> int:
    """How much further single replays through malloc went than what was taken as likely.

    A rehearsal is one draw of the same chance, seen at full size: it halves what is unknown.
    """
    spread = readings.growth_spread.get(moment, 0)
    return spread // 2 if readings.rehearsed else spread
