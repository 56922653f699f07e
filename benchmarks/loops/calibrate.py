"""Stage ``calibrate``: how much of its doubt the upper bound of a loop's plan has to add.

For each loop to tune on there is a smallest factor of its weighted doubt that covers its run. Of n
loops the largest of these covers a new one with a probability of n / (n + 1) (split conformal
prediction): for 98 % it takes 49 of them.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.accuracy.store import Store
from benchmarks.loops.case import TUNING
from benchmarks.loops.cases import CASES
from memfit.analyses.upper_bound import TRIED


def factors(results: Path) -> str:
    """The largest factor that a loop to tune on needs, and those that come next."""
    cases = [case for case in CASES if case.group == TUNING]
    truth, plans = (Store(stage, results).current(cases) for stage in ("truth", "plan"))
    found = []
    for case in cases:
        true, said = truth.get(case.name, {}), plans.get(case.name, {})
        if true.get("ok") and said.get("ok") and said.get("doubt"):
            missing = true["peak_bytes"] - said["peak_bytes"] - TRIED.floor
            found.append((missing / max(1, TRIED.weighed(said["doubt"])), case.name))
    found.sort(reverse=True)
    if not found:
        return "no loop to tune on has a plan with its doubt"
    largest = ", ".join(f"{name} {factor:.2f}" for factor, name in found[:5])
    count = len(found)
    return (
        f"factor {max(0.0, found[0][0]):.3f}, from {count} loops: covers a new one with "
        f"{count / (count + 1):.1%} (largest: {largest})"
    )
