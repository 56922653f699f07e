"""The checks themselves are checked: codes, docstrings, examples, and their page."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from memfit.checks import FAMILIES, all_checks, run_checks, wanted, without_trifles
from memfit.checks.page import page
from memfit.model import NO_SLOPE, Advice, Finding, Fix, Kind, Ledger, Severity, const
from memfit.units import MIB
from tests.checks.reference_page import reference
from tests.checks.runs import READINGS, dqn, ppo
from tests.samples import dqn_plan, ppo_plan, row

CHECKS = all_checks()
DOCS = Path(__file__).parents[2] / "docs"
OLDER = 12  # codes from before there were families
each = pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.CODE))


def test_codes_are_unique_and_of_their_family() -> None:
    codes = [str(check.CODE) for check in CHECKS]
    assert len(set(codes)) == len(codes) >= 40
    assert codes[:OLDER] == [f"MF{i:03}" for i in range(1, OLDER + 1)]
    for check in CHECKS[OLDER:]:
        family = check.__name__.split(".")[-2]
        assert re.fullmatch(rf"MF{FAMILIES.index(family) + 1}\d\d", check.CODE)


def test_codes_are_chosen_by_their_beginning() -> None:
    every = {str(check.CODE) for check in CHECKS}
    off = {str(check.CODE) for check in CHECKS if hasattr(check, "OFF")}
    assert wanted((), ()) == every - off
    assert wanted(("ALL",), ()) == every
    assert wanted(("MF2",), ("MF203",)) == {c for c in every if c.startswith("MF2")} - {"MF203"}
    (noisy, *_) = off
    assert noisy not in wanted((noisy[:3],), ())
    assert noisy in wanted((noisy,), ())


@each
def test_a_check_has_its_parts(check: ModuleType) -> None:
    parts = page(check)
    assert parts.code == check.CODE
    assert re.fullmatch(r"[a-z].*\.", parts.title)
    assert parts.what and parts.why
    assert parts.in_text or parts.in_runs or parts.in_recordings
    assert not parts.in_text or isinstance(check.SEVERITY, Severity)
    assert len((check.__doc__ or "").splitlines()) < 40


@each
def test_its_examples_are_python_and_differ(check: ModuleType) -> None:
    parts = page(check)
    for example in (parts.bad, parts.good):
        assert ast.parse(example).body
    assert parts.bad != parts.good


@each
def test_it_stays_small(check: ModuleType) -> None:
    assert check.__file__ is not None
    assert len(Path(check.__file__).read_text(encoding="utf-8").splitlines()) <= 130


@each
def test_it_has_nothing_to_say_about_runs_that_it_does_not_know(check: ModuleType) -> None:
    """A run of another library has other rows and knobs: no check may stumble over that.

    These have rows of other names. That one goes over its limit late is seen by its steps alone.
    """
    if not hasattr(check, "find"):
        return
    late = {"MF002"} if check.CODE == "MF002" else set()
    for plan, expected in ((ppo_plan(), set()), (dqn_plan(), late)):
        found = check.find(plan.spec, plan.ledger, plan.limit.bytes)
        assert {finding.code for finding in found} == expected


def ledger_of(peak: int) -> Ledger:
    return Ledger(components=(row("buffer", Kind.BUFFER, const(peak), ("rollout",)),))


def made_up(code: str, severity: Severity, *peaks: int) -> ModuleType:
    """A check that finds one thing, and whose fixes leave a run with these peaks."""
    check = ModuleType(code)
    finding = Finding(code=code, severity=severity, message="", where="")
    vars(check).update(
        CODE=code,
        SEVERITY=severity,
        find=lambda spec, ledger, limit: [finding],
        fix=lambda spec, ledger: [Fix(change=f"to {p}", ledger=ledger_of(p)) for p in peaks],
    )
    return check


def test_a_saving_is_two_ledgers_subtracted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a peak of 1000: what costs memory is no advice."""
    checks = [
        made_up("MF901", Severity.INFO, 990, 991, 1005),
        made_up("MF902", Severity.ERROR, 400),
        made_up("MF903", Severity.WARNING, 700, 1000),
    ]
    monkeypatch.setattr("memfit.checks.all_checks", lambda: checks)
    findings, advice = run_checks(ppo_plan().spec, ledger_of(1000), 1)
    assert [finding.code for finding in findings] == ["MF902", "MF903", "MF901"]
    assert [(a.code, a.change, a.saves_bytes) for a in advice] == [
        ("MF902", "to 400", 600),
        ("MF903", "to 700", 300),
        ("MF901", "to 990", 10),
        ("MF901", "to 991", 9),
    ]


@pytest.mark.parametrize(
    ("peak", "least"),
    [(1600 * MIB, 16 * MIB), (1600 * MIB + 1, 16 * MIB + 1), (800 * MIB, 8 * MIB), (1, 8 * MIB)],
)
def test_trifles_are_less_than_a_hundredth_of_the_peak_or_8_mib(peak: int, least: int) -> None:
    def finding(code: str, amount: int | None) -> Finding:
        return Finding(code=code, severity=Severity.INFO, message="", where="", bytes=amount)

    def advice(code: str, saves: int) -> Advice:
        return Advice(code=code, change="", saves_bytes=saves)

    findings = [
        finding("MF901", None),
        finding("MF902", least),
        finding("MF903", least - 1),
        finding("MF904", 0),
    ]
    told, worth = without_trifles(findings, [], peak)
    assert ([f.code for f in told], worth) == (["MF901", "MF902"], ())
    # What saves enough is told with its finding, however little that is about.
    told, worth = without_trifles(
        findings, [advice("MF903", least - 1), advice("MF904", least)], peak
    )
    assert [f.code for f in told] == ["MF901", "MF902", "MF904"]
    assert [a.code for a in worth] == ["MF904"]


def test_findings_about_memory_say_how_much() -> None:
    """The two that were told of public scripts: 140 KiB of a rollout, and 394 KiB of float64."""
    still = replace(READINGS, live=NO_SLOPE, activations=None)
    copy = ppo(frame=17, readings=still)
    wide = ppo(frame=3, dtype="float64", knobs={"n_steps": 2100})
    for code, run in (("MF003", copy), ("MF007", wide)):
        every = run_checks(*run, 2**60)
        (finding,) = (f for f in every[0] if f.code == code)
        assert finding.bytes is not None and 100_000 < finding.bytes < MIB
        told, _ = without_trifles(*every, run[1].peak.bytes)
        assert finding not in told


def test_the_second_copy_of_a_replay_is_what_its_advice_saves() -> None:
    """100,000 steps of frames of 28,224 bytes, which the run stores twice."""
    spec, ledger = dqn()
    _, advice = run_checks(spec, ledger, 2**60)
    assert advice[0].saves_bytes == 100_000 * 28_224


def test_the_pages_are_current(request: pytest.FixtureRequest) -> None:
    written = reference()
    there = {f"checks/{file.name}" for file in (DOCS / "checks").glob("*.md")} | {"checks.md"}
    if request.config.getoption("--renew"):
        (DOCS / "checks").mkdir(exist_ok=True)
        for name in there - written.keys():
            (DOCS / name).unlink()
        for name, text in written.items():
            (DOCS / name).write_text(text, encoding="utf-8")
        there = set(written)
    assert there == set(written)
    for name, text in written.items():
        found = (DOCS / name).read_text(encoding="utf-8")
        assert found == text, f"{name}: run pytest tests/checks --renew"
