"""Which fixes to make together: found in ledgers, settled by what was measured of each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import combinations

from memfit.checks import fixes
from memfit.model import Advice, Changes, Fix, Ledger, RunSpec, least_worth
from memfit.model.optimized import TriedFix

Candidate = tuple[Advice, Fix]
_MOST_STEPS = 8  # fixes that are made one after the other
_MOST_TRIED = 10  # of which every combination is looked at


def candidates(
    spec: RunSpec, ledger: Ledger, limit: int, codes: Collection[str], *, safe_only: bool
) -> list[Candidate]:
    """Every fix that helps alone, and those that help once others are made.

    A fix that takes away the peak makes another moment the peak, for which there may be others.
    """
    found: list[Candidate] = []
    allowed = _allowed(safe_only)
    made, now = Changes(), ledger
    for _ in range(_MOST_STEPS):
        helping = [
            (advice, fix)
            for advice, fix in fixes(spec, now, limit, codes)
            if allowed(fix) and _is_worth(advice, ledger) and not fix.changes.meets(made)
        ]
        known = [fix.changes for _, fix in found]
        found += [each for each in helping if each[1].changes not in known]
        keeping = [fix for _, fix in helping if fix.safe or fix.to_rounding]
        if not keeping:
            break
        made, now = made.with_all(keeping[0].changes), keeping[0].ledger
    return found


def _allowed(safe_only: bool) -> Callable[[Fix], bool]:
    return lambda fix: fix.safe or not safe_only


def _is_worth(advice: Advice, ledger: Ledger) -> bool:
    return advice.saves_bytes >= least_worth(ledger.peak.bytes) // 2


def best_set(tried: Sequence[TriedFix], peak: int) -> list[TriedFix]:
    """The fixes to make together: all that keep the training and do not meet, the best first.

    One that could not be made, or was safe by its check and not by its run, is left out, and so are
    settings that save too little. Another part may save little alone, and much beside others.
    """
    chosen: list[TriedFix] = []
    least = least_worth(peak)
    usable = [one for one in tried if is_usable(one)]
    usable = [one for one in usable if not one.changes.variables or _gain(one) >= least]
    for one in sorted(usable, key=_gain, reverse=True):
        if not any(one.changes.meets(other.changes) for other in chosen):
            chosen.append(one)
    return chosen


def is_usable(one: TriedFix) -> bool:
    """Whether it may be part of a set."""
    broken = one.safe and one.identical is False
    return one.keeps_training and not one.why_not and not broken


def _gain(one: TriedFix) -> int:
    measured = one.measured_bytes if one.measured_bytes is not None else one.saves_bytes
    return measured or 0


def sets_for(tried: Sequence[TriedFix]) -> Iterator[list[TriedFix]]:
    """Sets of usable fixes, the cheapest first: safe ones before others, then few before many."""
    usable = sorted(filter(is_usable, tried), key=_gain, reverse=True)[:_MOST_TRIED]
    every = [
        list(some)
        for size in range(1, len(usable) + 1)
        for some in combinations(usable, size)
        if not any(a.changes.meets(b.changes) for a, b in combinations(some, 2))
    ]
    yield from sorted(every, key=lambda some: (not all(one.safe for one in some), _cost(some)))


def _cost(some: Sequence[TriedFix]) -> tuple[float, int]:
    """How much slower a run is told to become, beyond what may be noise, and how many edits."""
    slower = 0.0
    for one in some:
        if one.time_ratio is not None:
            slower += max(0.0, one.time_ratio - 1 - 2 * (one.time_noise or 0.0))
    return round(slower, 1), len(some)


def expected(peak: int, some: Sequence[TriedFix]) -> int:
    """What a set would leave if its fixes did not overlap: more is needed, never less."""
    return peak - sum(max(0, _gain(one)) for one in some)
