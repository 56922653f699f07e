"""Bring a ledger in line with the peaks that a rehearsal measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from memfit.formulas.shared_rows import measured, probed
from memfit.model import Component, Evidence, Kind, Ledger, Rehearsed, maximum, phase_of
from memfit.model.size import Knobs

_SEEN = measured("a rehearsal at full size: what the kernel counted beyond the rows named here")
_EXTENDED = probed(
    "rehearsals at smaller sizes, extended in a straight line, beyond the rows named here"
)


def reconcile(ledger: Ledger, rehearsed: Sequence[Rehearsed], scale: Knobs) -> Ledger:
    """The ledger whose phases peak where the rehearsal's did; `scale` is the run's full size.

    What a phase was measured above its rows is what the allocator and unseen objects hold; where
    rows predicted more than was seen, the allocator's share, then scratch, is what gives way.
    """
    peaks = extend(rehearsed, scale)
    evidence = _SEEN if _is_full(rehearsed[-1], scale) else _EXTENDED
    components = list(ledger.components)
    for phase, peak in peaks.items():
        moments = [m for m in ledger.moments if phase_of(m) == phase]
        if not moments:
            continue
        current = ledger.with_rows(components)
        totals = {m: current.moment_bytes[m] - _workers(current, m) for m in moments}
        highest = max(moments, key=lambda m: totals[m])
        for moment in moments:
            difference = peak - totals[moment]
            if difference < 0 or moment == highest:
                components = _absorb(components, ledger, moment, difference, evidence)
    return ledger.with_rows(components)


def extend(rehearsed: Sequence[Rehearsed], scale: Knobs) -> Mapping[str, int]:
    """Each phase's peak at full size: the last rehearsal's, or the line through the last two."""
    last = rehearsed[-1]
    if _is_full(last, scale) or len(rehearsed) < 2:
        return last.moments
    before = rehearsed[-2]
    done, more = _distance(before.knobs, last.knobs), _distance(last.knobs, scale)
    return {
        phase: peak + (peak - before.moments[phase]) * more // max(1, done)
        for phase, peak in last.moments.items()
    }


def _is_full(rehearsed: Rehearsed, scale: Knobs) -> bool:
    return all(rehearsed.knobs.get(name) == value for name, value in scale.items())


def _distance(a: Knobs, b: Knobs) -> int:
    """The knobs of a scale grow together, so that any that differs tells the distance."""
    return next((b[name] - a[name] for name in b if name in a and b[name] != a[name]), 0)


def _workers(ledger: Ledger, moment: str) -> int:
    """Rehearsals are read without the workers, whose number differs."""
    return sum(
        ledger.bytes_of(c)
        for c in ledger.components
        if c.kind is Kind.WORKER and c.alive_in(moment)
    )


def _absorb(
    components: list[Component],
    ledger: Ledger,
    moment: str,
    difference: int,
    evidence: Evidence,
) -> list[Component]:
    """Change one moment by `difference` bytes, in the rows that are least known."""
    changed = list(components)
    for kind in (Kind.FRAGMENTATION, Kind.SCRATCH):
        for i, c in enumerate(changed):
            if c.kind is kind and c.alive_in(moment) and difference:
                now = ledger.bytes_of(c)
                step = max(difference, -now)
                changed[i] = replace(c, size=maximum(c.size + step, 0), evidence=evidence)
                difference -= step
    if difference > 0:
        row = Component(
            name=f"unattributed.{moment}",
            kind=Kind.UNATTRIBUTED,
            size=maximum(difference, 0),
            phases=(moment,),
            evidence=evidence,
        )
        changed.append(row)
    return changed
