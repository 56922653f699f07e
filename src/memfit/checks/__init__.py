"""Checks: one file each, with what it finds, why that matters, examples, and a fix if there is one.

A check is a module in the folder of its family with a `CODE`, a docstring (its page in
docs/checks) and at least one of

    find_in_source(source)         spots in the text of a script, with a SEVERITY of its own
    find(spec, ledger, limit)      findings of a planned run, perhaps with fix(spec, ledger)
    find_in_recording(trace, forecast)    what a recorded run proves

`OFF` says why a noisy one is off unless it is selected. A check is found by being here.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cache
from types import ModuleType

from memfit.checks.spot import Spot, ignored_codes, lines_of
from memfit.model import (
    Advice,
    Finding,
    Fix,
    Forecast,
    Ledger,
    RunSpec,
    Severity,
    Trace,
    least_worth,
)
from memfit.syntax import Source, last_name

Found = tuple[tuple[Finding, ...], tuple[Advice, ...]]
FAMILIES = ("storage", "update", "logic", "processes", "environments")
UNREADABLE = "MF000"  # a file that is no Python
_TEST_FILE = re.compile(r"(^|/)test_[^/]*\.py$|_test\.py$")
_ORDER = (Severity.ERROR, Severity.WARNING, Severity.INFO)


@cache
def _loaded() -> tuple[ModuleType, ...]:
    found = []
    for family in FAMILIES:
        room = importlib.import_module(f"{__name__}.{family}")
        names = [m.name for m in pkgutil.iter_modules(room.__path__) if m.name[0] != "_"]
        found += [importlib.import_module(f"{room.__name__}.{name}") for name in names]
    return tuple(sorted(found, key=_code))


def all_checks() -> list[ModuleType]:
    """Every check, by its code."""
    return list(_loaded())


def wanted(select: Collection[str], ignore: Collection[str]) -> frozenset[str]:
    """The codes that these prefixes leave; one that is off is only wanted by its whole code.

    Without `select` it is every check that is on; "ALL" is really all.
    """
    found = set()
    for check in all_checks():
        code = _code(check)
        on = not getattr(check, "OFF", "")
        asked = "ALL" in select or code in select
        if (asked or (on and (not select or code.startswith(tuple(select))))) and (
            code in select or not code.startswith(tuple(ignore) or ("-",))
        ):
            found.add(code)
    return frozenset(found)


def check_source(source: Source, codes: Collection[str] | None = None) -> tuple[list[Finding], int]:
    """What the checks find in a text, in its order, and how many findings comments left out."""
    codes = wanted((), ()) if codes is None else codes
    quiet = ignored_codes(source.text)
    findings, ignored = [], 0
    for check in all_checks():
        if _code(check) not in codes or not hasattr(check, "find_in_source"):
            continue
        seen = set()
        for spot in check.find_in_source(source):
            if _in_a_test(source, spot.node):
                continue
            place = getattr(spot.node, "lineno", 1), getattr(spot.node, "col_offset", 0) + 1
            if place in seen:
                continue
            seen.add(place)
            silenced = [code for line in lines_of(spot.node) for code in quiet.get(line, ())]
            if silenced and _code(check).startswith(tuple(silenced)):
                ignored += 1
            else:
                findings.append(_finding(check, source.path, place, spot))
    findings.sort(key=lambda f: (f.line, f.column, f.code))
    return findings, ignored


def _in_a_test(source: Source, node: ast.AST) -> bool:
    """Whether it lives no longer than a unit test: test_*(), or a class of tests."""
    if not source.packages & {"pytest", "unittest"} and not _TEST_FILE.search(source.path):
        return False  # many agents have a test_agent()
    for above in source.ancestors(node):
        if isinstance(above, ast.ClassDef) and (
            above.name.startswith("Test") or any("TestCase" in last_name(b) for b in above.bases)
        ):
            return True
        if isinstance(above, ast.FunctionDef) and above.name.startswith("test_"):
            return True
    return False


def _finding(check: ModuleType, path: str, place: tuple[int, int], spot: Spot) -> Finding:
    line, column = place
    return Finding(
        code=_code(check),
        severity=spot.severity or check.SEVERITY,
        message=spot.message,
        where=f"{path}:{line}:{column}",
        path=path,
        line=line,
        column=column,
        fix=spot.fix,
    )


def run_checks(spec: RunSpec, ledger: Ledger, limit: int, codes: Collection[str] = ()) -> Found:
    """What all checks find, worst first, and what would save memory, most first."""
    findings: list[Finding] = []
    advice: list[Advice] = []
    for check in all_checks():
        off = getattr(check, "OFF", "") if not codes else _code(check) not in codes
        if off or not hasattr(check, "find"):
            continue
        if found := list(check.find(spec, ledger, limit)):
            findings.extend(found)
            advice += [_advice(_code(check), fix, ledger) for fix in _helping(check, spec, ledger)]
    findings.sort(key=lambda f: (_ORDER.index(f.severity), f.code))
    advice.sort(key=lambda a: -a.saves_bytes)
    return tuple(findings), tuple(advice)


def check_recording(
    trace: Trace, forecast: Forecast, path: str, codes: Collection[str]
) -> list[Finding]:
    """What a recording proves, worst first."""
    found = [
        replace(finding, path=path, where=f"{path}: {finding.where}")
        for check in all_checks()
        if _code(check) in codes and hasattr(check, "find_in_recording")
        for finding in check.find_in_recording(trace, forecast)
    ]
    return sorted(found, key=lambda f: (_ORDER.index(f.severity), f.code))


def without_trifles(findings: Iterable[Finding], advice: Iterable[Advice], peak: int) -> Found:
    """The same without advice that saves too little, and findings about as little."""
    least = least_worth(peak)
    worth = tuple(a for a in advice if a.saves_bytes >= least)
    advised = {a.code for a in worth}
    told = (f for f in findings if f.bytes is None or f.bytes >= least or f.code in advised)
    return tuple(told), worth


def fixes(
    spec: RunSpec, ledger: Ledger, limit: int, codes: Collection[str]
) -> list[tuple[Advice, Fix]]:
    """What of these checks would save memory and can be made by a program, most first."""
    found: list[tuple[Advice, Fix]] = []
    for check in all_checks():
        if _code(check) in codes and hasattr(check, "fix"):
            if not list(check.find(spec, ledger, limit)):
                continue
            helping = [fix for fix in _helping(check, spec, ledger) if fix.changes]
            found += [(_advice(_code(check), fix, ledger), fix) for fix in helping]
    return sorted(found, key=lambda each: -each[0].saves_bytes)


def _helping(check: ModuleType, spec: RunSpec, ledger: Ledger) -> list[Fix]:
    made = check.fix(spec, ledger) if hasattr(check, "fix") else ()
    return [fix for fix in made if fix.ledger.peak.bytes < ledger.peak.bytes]


def _advice(code: str, fix: Fix, ledger: Ledger) -> Advice:
    """A saving is two ledgers subtracted, whoever proposes it."""
    return Advice(
        code=code,
        change=fix.change,
        saves_bytes=ledger.peak.bytes - fix.ledger.peak.bytes,
        safe=fix.safe,
        to_rounding=fix.to_rounding,
        costs=fix.costs,
        changes=fix.changes,
    )


def _code(check: ModuleType) -> str:
    return str(check.CODE)
