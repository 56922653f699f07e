"""Stage ``calibrate``: how much of a plan's doubt its upper bound has to add.

The bound is the peak, a floor, and a factor times the weighted bytes in doubt
(`memfit.analyses.upper_bound`). For each run of a draw there is a smallest factor that covers it.
Of n runs, the one at place (n + 1) * 0.99, rounded up, covers a new run of the same distribution
with a probability of 99 % (split conformal prediction); below 99 runs that is the largest.
"""

from __future__ import annotations

import math

from benchmarks.accuracy.draw import draw
from benchmarks.accuracy.store import Store
from memfit.analyses.upper_bound import REHEARSED, SURVEYED, Margin

COVERED = 0.99
WAYS = {"quick": SURVEYED, "probe": REHEARSED}


def factors(seed: int, runs: int) -> str:
    """The factor of each way to plan, and how many runs it was found with."""
    return "\n".join(
        f"{way}: factor {place(found):.3f}, from {len(found)} runs ({_few(found)})"
        for way, margin in WAYS.items()
        if (found := needed(seed, runs, way, margin))
    )


def needed(seed: int, runs: int, way: str, margin: Margin) -> list[float]:
    """The smallest factor that covers each run, in order; a run is its first one."""
    cases = draw(seed, runs)
    truth = Store(f"draw{seed}-truth").current(cases)
    plans = Store(f"draw{seed}-{way}").current(cases)
    found = []
    for name, true in truth.items():
        planned = plans.get(name)
        if true["ok"] and planned and planned["ok"]:
            missing = true["peaks"][0] - planned["peak_bytes"] - margin.floor
            found.append(missing / max(1, margin.weighed(planned["doubt"])))
    return sorted(found)


def place(ordered: list[float]) -> float:
    """The value that covers a new run with the probability asked for."""
    return ordered[min(len(ordered), math.ceil((len(ordered) + 1) * COVERED)) - 1]


def _few(ordered: list[float]) -> str:
    return "largest: " + ", ".join(f"{factor:.2f}" for factor in ordered[-5:])
