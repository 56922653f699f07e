"""A demonstration: a plan beside what the same run then really used."""

from __future__ import annotations

from dataclasses import dataclass

from memfit.model.plan import Plan


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One row: what was predicted and what was measured."""

    name: str
    predicted: int
    measured: int


@dataclass(frozen=True, kw_only=True)
class Demo:
    """The answer of `memfit demo`: phases and rows, and the peak seen from outside."""

    plan: Plan
    phases: tuple[Compared, ...]
    rows: tuple[Compared, ...]
    peak: Compared
    updates: int
    seconds: float
