"""The accuracy that the benchmark publishes, as bounds for the few runs of a test.

`benchmarks/accuracy` compares over a hundred runs. A handful can be unlucky: so their median is
held to what 95 of 100 published runs keep (six runs drawn from these would miss that in 2 of 1,000
tries), and each of them to the worst published run and what two runs of the same script differ by.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.accuracy.cases import CASES
from benchmarks.accuracy.stats import Spread, summarize, true_peaks
from benchmarks.accuracy.store import Store

# What malloc keeps differs from run to run, by 1 to 3 % of the peak (README). The worst of over a
# hundred runs has such chance in it already, so that the least of it is added.
RUN_TO_RUN = 0.01


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """How far off the median of a few runs may be, and each of them, as shares of the truth."""

    median: float
    worst: float


def bounds(stage: str) -> Bounds:
    """What `plan` or `probe` must keep by the results that are committed."""
    spread = published(stage)
    assert spread.p95 is not None and spread.worst is not None, f"no results of {stage}"
    return Bounds(median=spread.p95, worst=spread.worst + RUN_TO_RUN)


def published(stage: str) -> Spread:
    """The errors of a stage's predicted peaks over all cases of the benchmark."""
    truth = true_peaks(Store("truth").current(CASES))
    return summarize(Store(stage).current(CASES), truth).error
