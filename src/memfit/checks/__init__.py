"""Checks: one file each, with what it finds, why that matters, examples, and a fix if there is one.

A check is a module in the folder of its family with a `CODE`, a docstring (its page in
docs/checks) and one or both of

    find_in_source(source)         spots in the text of a script, with a SEVERITY of its own
    find(spec, ledger, limit)      findings of a planned run, perhaps with fix(spec, ledger)

`OFF` says why a noisy one is off unless it is selected. A check is found by being here.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Collection, Iterable
from functools import cache
from types import ModuleType

from memfit.checks.spot import Spot, ignored_codes, lines_of
from memfit.model import Advice, Finding, Fix, Ledger, RunSpec, Severity, least_worth
from memfit.syntax import Source

Found = tuple[tuple[Finding, ...], tuple[Advice, ...]]
FAMILIES = ("storage", "update", "logic", "processes", "environments")
UNREADABLE = "MF000"  # a file that is no Python
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
            yield Advice(code=code, change=fix.change, saves_bytes=saves, safe=fix.safe)


def _code(check: ModuleType) -> str:
    return str(check.CODE)
