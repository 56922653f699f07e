"""The training runs that predictions are compared with."""

from __future__ import annotations

from benchmarks.accuracy.case import Case
from benchmarks.accuracy.cases_off_policy import CONTINUOUS, DISCRETE
from benchmarks.accuracy.cases_on_policy import A2C, PPO
from benchmarks.accuracy.cases_others import CONTRIB, PROCESSES, SCRIPTED, WRAPPED

CASES: tuple[Case, ...] = (
    *PPO,
    *A2C,
    *DISCRETE,
    *CONTINUOUS,
    *CONTRIB,
    *PROCESSES,
    *WRAPPED,
    *SCRIPTED,
)


def select(only: str | None = None, small: bool = False) -> list[Case]:
    """Return the cases whose name contains a text, or only those of the small slice."""
    return [
        case for case in CASES if (only is None or only in case.name) and (case.small or not small)
    ]
