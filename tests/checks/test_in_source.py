"""Each check that reads texts, by the examples in its own file and on its page."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest

from memfit.checks import all_checks, check_source, wanted
from memfit.checks.page import page
from memfit.syntax import Source

READING = [check for check in all_checks() if hasattr(check, "find_in_source")]
ON = wanted((), ())


def examples(name: str) -> list[tuple[str, str]]:
    return list(_examples(name))


def _examples(name: str) -> Iterator[tuple[str, str]]:
    for check in READING:
        page_of = page(check)
        texts = [page_of.bad if name == "FOUND" else page_of.good, *getattr(check, name, ())]
        yield from ((str(check.CODE), text) for text in texts)


def codes(text: str, wanted_codes: frozenset[str]) -> list[str]:
    return [finding.code for finding in check_source(Source(text), wanted_codes)[0]]


@pytest.mark.parametrize(("code", "text"), examples("FOUND"))
def test_what_is_wrong_is_found(code: str, text: str) -> None:
    assert codes(text, frozenset({code})) == [code]


@pytest.mark.parametrize(("code", "text"), examples("CLEAN"))
def test_what_is_right_is_not(code: str, text: str) -> None:
    assert codes(text, frozenset({code})) == []


@pytest.mark.parametrize(("code", "text"), examples("CLEAN"))
def test_what_one_check_calls_good_no_other_blames(code: str, text: str) -> None:
    """Examples are short, so that a few of them are right for one check alone."""
    assert set(codes(text, ON)) <= {"MF006"} - {code}


@pytest.mark.parametrize("check", READING, ids=lambda check: str(check.CODE))
def test_a_finding_says_where_and_what_to_do(check: ModuleType) -> None:
    (finding,) = check_source(Source(page(check).bad, "train.py"), {check.CODE})[0]
    assert finding.severity is check.SEVERITY
    assert finding.where == f"train.py:{finding.line}:{finding.column}"
    assert finding.line >= 1 and finding.message and finding.fix
    assert finding.message[0].islower() or finding.message.split()[0] in page(check).bad


RETAINS = "loss.backward(retain_graph=True)\n{0}optimizer.step()\n"


@pytest.mark.parametrize(
    ("begin", "found"),
    [
        ("def train():\n    ", ["MF203"]),
        ("def test_training():\n    ", []),
        ("class TestTraining:\n  def train(self):\n    ", []),
        ("class Training(unittest.TestCase):\n  def train(self):\n    ", []),
        ("class Training(Base):\n  def train(self):\n    ", ["MF203"]),
    ],
)
def test_what_a_test_makes_is_passed_over(begin: str, found: list[str]) -> None:
    text = begin + RETAINS.format("    ")
    assert codes("import unittest\n" + text, ON) == found
    assert codes(text, ON) == ["MF203"]
    beside = check_source(Source(text, "tests/test_training.py"), ON)[0]
    assert [finding.code for finding in beside] == found
