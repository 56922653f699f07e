"""The loops that plans are compared with: two thirds to tune on, a third for the report alone."""

from __future__ import annotations

from benchmarks.loops.case import Loop
from benchmarks.loops.cases_report import REPORTED
from benchmarks.loops.cases_tuning import TUNED

CASES: tuple[Loop, ...] = (*TUNED, *REPORTED)
