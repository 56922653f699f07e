"""An upper bound of a run's peak that a scheduler can rely on.

What a plan knows of its own doubt is bytes by cause: rows by how they are known, what malloc adds
to them, how far its replays differ, and what is extrapolated without knowing how. The bound adds
so many thousandths of each, and what two runs of the same small script differ by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from memfit.model import Component, EvidenceKind, Kind, Ledger, Readings, phase_of

SLACK, SPREAD, UNMATCHED = "slack", "replay_spread", "unmatched"


@dataclass(frozen=True, kw_only=True)
class Margin:
    """What is added to a peak: bytes in any case, and thousandths of what is in doubt.

    `factor` is calibrated (benchmarks/accuracy/calibrate.py), so that 99 % of runs are covered.
    """

    floor: int
    thousandths: Mapping[str, int]
    factor: float = 1.0

    def of(self, doubt: Mapping[str, int]) -> int:
        return self.floor + round(self.factor * self.weighed(doubt))

    def weighed(self, doubt: Mapping[str, int]) -> int:
        """Bytes in doubt, each cause by its weight."""
        return sum(size * self.thousandths[cause] // 1000 for cause, size in doubt.items())


# Weights were chosen on 23 runs drawn by benchmarks/accuracy, which no table reports.
SURVEYED = Margin(
    floor=12 * 2**20,
    thousandths={
        EvidenceKind.MEASURED: 25,
        EvidenceKind.DERIVED: 10,
        EvidenceKind.PROBED: 50,
        EvidenceKind.ASSUMED: 500,
        SLACK: 100,
        SPREAD: 1000,
        UNMATCHED: 1000,
    },
)
# A rehearsal has seen the real thing once: the chance in it remains.
REHEARSED = Margin(
    floor=6 * 2**20,
    thousandths={
        EvidenceKind.MEASURED: 20,
        EvidenceKind.DERIVED: 10,
        EvidenceKind.PROBED: 200,
        EvidenceKind.ASSUMED: 500,
        SLACK: 200,
        SPREAD: 500,
        UNMATCHED: 0,
    },
)
# A trial has seen only the run's beginning, and states what it will hold later. The weights were
# chosen on loops to tune on, of which 3 of 46 went over a rehearsal's margin. By split conformal
# prediction (`python -m benchmarks.loops calibrate`) 34 of 35 loops need a factor of at most 0.63,
# and one, whose trial ran out of time beside other work, 1.81. For 98 % it takes 49 loops: until
# then the factor stays at 1.
TRIED = replace(
    REHEARSED,
    thousandths={
        **REHEARSED.thousandths,
        EvidenceKind.MEASURED: 45,
        EvidenceKind.DERIVED: 25,
    },
)
# A plan that may be off by this share of its peak, as far as it knows, is in doubt. A replay may
# miss by this share of what malloc keeps (runs of two draws that no table reports), for which a
# run is rehearsed only where that takes little itself.
_IN_DOUBT, _SLACK_MISSED, _LITTLE = 0.05, 0.2, 2 * 2**30


def upper_bytes(ledger: Ledger, readings: Readings) -> int:
    """The most that the peak may come to."""
    margin = TRIED if readings.trial else REHEARSED if readings.rehearsed else SURVEYED
    return max(
        (
            total + margin.of(doubt_bytes(ledger, readings, moment))
            for moment, total in ledger.moment_bytes.items()
        ),
        default=margin.floor,
    )


def doubt_bytes(ledger: Ledger, readings: Readings, moment: str) -> dict[str, int]:
    """Bytes of a moment by what makes them doubtful."""
    found = dict.fromkeys(SURVEYED.thousandths, 0)
    for c, amount in zip(ledger.components, ledger.sizes, strict=True):
        if c.alive_in(moment):
            found[_cause(c, tried=readings.trial is not None)] += amount
    found[SPREAD] = readings.growth_spread.get(moment, 0)
    if phase_of(moment) == "update":
        found[UNMATCHED] = readings.unmatched
    return {str(cause): size for cause, size in found.items()}


def _cause(component: Component, *, tried: bool) -> str:
    """What makes a row doubtful. What comes and goes, a trial of few updates has only sampled."""
    if component.kind is Kind.FRAGMENTATION:
        return SLACK
    passing = component.kind in (Kind.ACTIVATIONS, Kind.SCRATCH, Kind.COPIES)
    return EvidenceKind.PROBED if tried and passing else component.evidence.kind


def in_doubt(ledger: Ledger, readings: Readings) -> bool:
    """Whether a plan does not know a twentieth of its peak: to be rehearsed, if it can be."""
    peak = ledger.peak
    doubt = doubt_bytes(ledger, readings, peak.moment)
    unknown = doubt[SPREAD] + doubt[UNMATCHED] + doubt[EvidenceKind.ASSUMED]
    if peak.bytes <= _LITTLE:
        unknown += round(_SLACK_MISSED * doubt[SLACK])
    return not readings.rehearsed and unknown > _IN_DOUBT * peak.bytes
