"""What is written about a reference system: its plans at full size, and what was measured of it."""

from __future__ import annotations

from dataclasses import dataclass

from memfit.model.demo import SystemDemo, SystemRun
from memfit.model.finding import Advice, Finding, Severity
from memfit.model.plan import Plan

_ORDER = (Severity.ERROR, Severity.WARNING, Severity.INFO)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The kind of a machine, which says nothing of whose it is."""

    processor: str
    cores: int
    ram_bytes: int
    software: tuple[str, ...] = ()  # what was run, with versions


@dataclass(frozen=True, kw_only=True)
class LogicCheck:
    """A mistake that was looked for in a training's text or in its run, and where it was found."""

    code: str
    title: str
    found: tuple[Finding, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Described:
    """One way of a system to train, at the size that it is described with."""

    name: str
    plan: Plan

    @property
    def totals(self) -> tuple[tuple[str, int, int, str], ...]:
        """Rows alive at the peak, the largest first: name, what one more adds, bytes, evidence."""
        ledger, knob = self.plan.ledger, self.plan.per
        alive = [c for c in ledger.components if c.alive_in(ledger.peak.moment)]
        ordered = sorted(alive, key=lambda c: (-ledger.bytes_of(c), c.name))
        return tuple(
            (c.name, ledger.one_more(c, knob), ledger.bytes_of(c), str(c.evidence.kind))
            for c in ordered
        )

    @property
    def one_more(self) -> int:
        """What one more adds to all rows."""
        return sum(each for _, each, _, _ in self.totals)


@dataclass(frozen=True, kw_only=True)
class SystemDocument:
    """The answer of `memfit demo SYSTEM --format md`.

    `beside` are measured runs of all ways to train at one size, the first as described. `issues`
    were found in the text; those that the plan found are in the plan.
    """

    date: str
    machine: Machine
    demo: SystemDemo
    ways: tuple[Described, ...]
    beside: tuple[SystemRun, ...]
    issues: tuple[Finding, ...]
    logic: tuple[LogicCheck, ...]
    seconds: float

    @property
    def first(self) -> Described:
        """As described."""
        return self.ways[0]

    @property
    def all_issues(self) -> tuple[Finding, ...]:
        """Of the run and of the text, the worst first; the same is not told twice."""
        planned = self.first.plan.findings
        told = {f.code for f in planned}
        found = [*planned, *(f for f in self.issues if f.code not in told)]
        return tuple(sorted(found, key=lambda f: (_ORDER.index(f.severity), f.code)))

    @property
    def advice(self) -> tuple[Advice, ...]:
        """What would help, measured savings first, then by what they save."""
        return tuple(sorted(self.first.plan.advice, key=lambda a: (not a.verified, -a.saves_bytes)))

    @property
    def saved(self) -> tuple[tuple[str, int, float], ...]:
        """Measured at one size: what each other way saves, and its share of the first."""
        before = self.beside[0].measured
        return tuple(
            (run.training, before - run.measured, (before - run.measured) / before)
            for run in self.beside[1:]
        )
