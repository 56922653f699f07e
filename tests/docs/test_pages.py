"""What pages state is what the code and the benchmarks say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md"))
EXACT = re.findall(
    r"^\|.*\]\((benchmarks/[^)]+)\).*\|$", README.split("## How exact")[1], re.MULTILINE
)
GOLDEN = sorted((ROOT / "tests" / "render" / "golden").glob("*.json"))


def figures(text: str) -> set[str]:
    """Its numbers, without thousands' commas."""
    return set(re.findall(r"\d+(?:\.\d+)?", text.replace(",", "")))


@pytest.mark.parametrize("page", EXACT)
def test_figures_of_the_readme_are_those_of_the_benchmarks(page: str) -> None:
    row = next(line for line in README.splitlines() if f"]({page})" in line)
    assert figures(row) <= figures((ROOT / page).read_text(encoding="utf-8"))


def test_the_readme_has_a_row_for_each_kind_of_figure() -> None:
    assert len(EXACT) >= 4


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: str(file.stem))
def test_keys_of_json_stand_on_a_page(file: Path) -> None:
    keys = set(json.loads(file.read_text(encoding="utf-8")))
    assert keys <= set(re.findall(r"`(\w+)`", PAGES)), "name them in docs/output.md"
