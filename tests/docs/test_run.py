"""What stands in README.md and docs/ is run: every command, every line of Python."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, Block, blocks, pages
from tests.docs.page_runner import Runner

pytestmark = [pytest.mark.slow, pytest.mark.torch, pytest.mark.timeout(1200)]


def run_of(page: Path) -> list[Block]:
    return [block for block in blocks() if block.page == page and not block.not_run]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    one = Runner(store=tmp_path_factory.mktemp("given"))
    yield one
    one.close()


WITH_COMMANDS = [page for page in pages() if any(block.is_commands for block in run_of(page))]
WITH_PYTHON = [page for page in pages() if any(b.language == "python" for b in run_of(page))]


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name_of)
def test_commands_of_a_page_do_what_it_shows(page: Path, runner: Runner, tmp_path: Path) -> None:
    folder = runner.folder(tmp_path)
    found = [block for block in run_of(page) if block.is_commands]
    wrong = [failure for block in found for failure in runner.failures(block, folder)]
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize("page", WITH_PYTHON, ids=name_of)
def test_python_of_a_page_runs(page: Path, runner: Runner, tmp_path: Path) -> None:
    found = [block for block in run_of(page) if block.language == "python"]
    failure = runner.python_failure(found, runner.folder(tmp_path))
    assert not failure, failure


ROWS = re.compile(r"^\| row of `([\w.]+)` .*?\n\| -.*?\n((?:\|.*\n)+)", re.MULTILINE)
FORMULAS = [
    (script, *row)
    for script, table in ROWS.findall((ROOT / "docs" / "formulas.md").read_text(encoding="utf-8"))
    for row in re.findall(r"^\| `([\w.]+)` \| `([^`]+)`", table, re.MULTILINE)
]


def test_formulas_of_the_page_are_those_of_the_plans(runner: Runner, tmp_path: Path) -> None:
    assert len(FORMULAS) > 8
    planned = {}
    for script in {script for script, *_ in FORMULAS}:
        command = f"memfit plan {script} -q --format json -o plan.json"
        folder = runner.folder(tmp_path / script)
        code, output = runner.asked(command, folder)
        assert code == 0, output
        rows = json.loads((folder / "plan.json").read_text(encoding="utf-8"))["components"]
        planned[script] = {row["name"]: row["formula"] for row in rows}
    for script, name, formula in FORMULAS:
        assert planned[script].get(name) == formula, f"{name} of {script}"
