"""The checks themselves are checked: codes, docstrings, examples, and their page."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from types import ModuleType

import pytest

from memfit.checks import all_checks, run_checks
from memfit.checks._reference import page, reference
from tests.checks.runs import dqn, ppo
from tests.samples import dqn_plan, ppo_plan

CHECKS = all_checks()
PAGE = Path(__file__).parents[2] / "docs" / "checks.md"
each = pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.CODE))


def test_codes_are_unique_and_without_gaps() -> None:
    assert [check.CODE for check in CHECKS] == [f"MF{i:03}" for i in range(1, len(CHECKS) + 1)]


@each
def test_a_check_has_its_parts(check: ModuleType) -> None:
    parts = page(check)
    assert parts.code == check.CODE
    assert re.fullmatch(r"[a-z].*\.", parts.title)
    assert parts.what and parts.why
    assert callable(check.find)
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
    assert len(Path(check.__file__).read_text(encoding="utf-8").splitlines()) <= 90


@each
def test_it_has_nothing_to_say_about_runs_that_it_does_not_know(check: ModuleType) -> None:
    """A run of another library has other rows and knobs: no check may stumble over that."""
    for plan in (ppo_plan(), dqn_plan()):
        list(check.find(plan.spec, plan.ledger, plan.limit.bytes))
        bare = plan.ledger.at()
        assert isinstance(run_checks(plan.spec, bare, 1), tuple)


def test_every_saving_is_two_ledgers_subtracted() -> None:
    """What is advised never costs memory, and is worth a hundredth of the peak at least."""
    for spec, ledger in (dqn(), ppo()):
        for limit in (1, 2**60):
            _, advice = run_checks(spec, ledger, limit)
            assert all(a.saves_bytes * 100 >= ledger.peak.bytes for a in advice)
            assert [a.saves_bytes for a in advice] == sorted(
                (a.saves_bytes for a in advice), reverse=True
            )


def test_the_page_is_current(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--renew"):
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(reference(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == reference(), "run pytest tests/checks --renew"
