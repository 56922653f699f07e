"""The benchmark of loops: its cases, and how its table counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks.loops.case import REPORT, SCRIPTS, Loop, loop
from benchmarks.loops.cases import CASES
from benchmarks.loops.notebook import code_cells, run_cells, written
from benchmarks.loops.notebook_cells import BOOKS
from benchmarks.loops.table import LINES, Row

MIB = 1 << 20


def row(said: dict[str, Any] | None, **changes: Any) -> Row:
    """A loop of 100 MiB whose cycle takes two seconds."""
    case = loop("x", "dqn", "--batch-size 8", "dqn", cycles=3, settings="batch_size=8", **changes)
    truth = {"ok": True, "peak_bytes": 100 * MIB, "cycle_seconds": 2.0}
    twice = {"ok": True, "peak_bytes": 200 * MIB} if case.doubled else None
    return Row(case=case, truth=truth, said=said, twice=twice, whatif=said)


def answer(**changes: Any) -> dict[str, Any]:
    given = {"ok": True, "peak_bytes": 101 * MIB, "upper_bytes": 110 * MIB, "seconds": 9.0}
    return {**given, "knobs": {"batch_size": 8}, **changes}


def figures(rows: list[Row]) -> dict[str, float | None]:
    return {line.title: line.value(rows) for line in LINES}


def test_an_answer_is_judged_by_all_that_is_asked() -> None:
    good = row(answer(), doubled="batch_size --batch-size")
    assert (good.answered, good.found, good.allowed) == (True, True, 10.0)
    assert good.pair.error == pytest.approx(0.01) and not good.pair.broken
    assert good.whatif_error == pytest.approx(-0.495)
    assert not row(answer(knobs={"batch_size": 9})).found
    assert row(answer(knobs={"BATCH_SIZE": 8})).found


def test_what_was_not_answered_is_a_miss() -> None:
    for said in (None, {"ok": False, "why": "exit code 1", "seconds": 3.0}):
        found = figures([row(said, doubled="batch_size --batch-size")])
        assert found["error of the peak, worst"] == 1.0
        assert found["upper bound broken"] == 1.0
        assert found["settings found"] == 0.0
        assert found["what-if within 5 %"] == 0.0
        assert found["time within two cycles + 6 s, and within 60 s"] == 0.0


def test_what_trains_without_an_optimizer_may_be_refused() -> None:
    refused = row({"ok": False, "why": "no optimizer"}, updates=False)
    assert figures([refused])["error of the peak, worst"] is None
    assert row(answer(), updates=False).compared


def test_a_setting_is_doubled_in_place_or_added() -> None:
    given = loop("x", "dqn", "--a 3 --n 4", "", cycles=1, settings="n=4", doubled="n --n")
    added = loop("x", "dqn", "--a 3", "", cycles=1, settings="n=4", doubled="n --n")
    assert given.at_twice().args == ("--a", "3", "--n", "8") == added.at_twice().args


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_case_is_there_with_its_settings(case: Loop) -> None:
    text = case.text.lower()
    assert all(name.lower() in text.replace("-", "_") for name in case.settings)
    own = case.args[case.args.index("-m") :] if "-m" in case.args else case.args
    for option in (word for word in own if word.startswith("--")):
        assert option in text or option[2:].replace("-", "_") in text


def test_a_third_is_for_the_report_alone() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 40
    scripts = {case.script: case.group for case in CASES}
    assert all(scripts[case.script] == case.group for case in CASES)
    assert sum(group == REPORT for group in scripts.values()) / len(scripts) >= 1 / 3


@pytest.mark.parametrize("name", BOOKS)
def test_the_notebooks_are_those_that_are_written(name: str) -> None:
    assert (SCRIPTS / f"{name}.ipynb").read_text() == written(BOOKS[name])


def test_cells_run_in_one_namespace(tmp_path: Path) -> None:
    book, mark = tmp_path / "book.ipynb", tmp_path / "mark"
    write = f"import pathlib; pathlib.Path({str(mark)!r}).write_text(str(x))"
    book.write_text(
        written((("code", "%matplotlib inline\nx = 2"), ("markdown", "text"), ("code", write)))
    )
    assert len(code_cells(book)) == 2
    run_cells(book)
    assert mark.read_text() == "2"
