"""Checks: one file each, with what it finds, why that matters, examples, and a fix if there is one.

A check is a module with a `CODE`, a docstring (its page in docs/checks.md), `find` and perhaps
`fix`. It is found by being here; `run_checks` runs them all.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from types import ModuleType

from memfit.model import Advice, Finding, Fix, Ledger, RunSpec, Severity, least_worth

Found = tuple[tuple[Finding, ...], tuple[Advice, ...]]
_ORDER = (Severity.ERROR, Severity.WARNING, Severity.INFO)


def all_checks() -> list[ModuleType]:
    """Every check, by its code."""
    names = [m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")]
    return sorted((importlib.import_module(f"{__name__}.{n}") for n in names), key=_code)


def run_checks(spec: RunSpec, ledger: Ledger, limit: int) -> Found:
    """What all checks find, worst first, and what would save memory, most first."""
    findings: list[Finding] = []
    advice: list[Advice] = []
    for check in all_checks():
        if found := list(check.find(spec, ledger, limit)):
            findings.extend(found)
            if hasattr(check, "fix"):
                advice.extend(_advice(_code(check), check.fix(spec, ledger), ledger))
    findings.sort(key=lambda f: (_ORDER.index(f.severity), f.code))
    advice.sort(key=lambda a: -a.saves_bytes)
    return tuple(findings), tuple(advice)


def without_trifles(findings: Iterable[Finding], advice: Iterable[Advice], peak: int) -> Found:
    """The same without advice that saves too little, and findings about as little."""
    least = least_worth(peak)
    worth = tuple(a for a in advice if a.saves_bytes >= least)
    advised = {a.code for a in worth}
    told = (f for f in findings if f.bytes is None or f.bytes >= least or f.code in advised)
    return tuple(told), worth


def _advice(code: str, fixes: Iterable[Fix], ledger: Ledger) -> Iterable[Advice]:
    """A saving is two ledgers subtracted, whoever proposes it."""
    peak = ledger.peak.bytes
    for fix in fixes:
        saves = peak - fix.ledger.peak.bytes
        if saves > 0:
            yield Advice(code=code, change=fix.change, saves_bytes=saves)


def _code(check: ModuleType) -> str:
    return str(check.CODE)
