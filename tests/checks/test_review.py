"""The published table of reviewed findings is that of the findings themselves."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

ROOM = Path(__file__).parents[2] / "benchmarks" / "checks"


def test_the_table_counts_what_was_reviewed() -> None:
    with (ROOM / "results" / "review.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["verdict"] for row in rows} == {"right", "wrong"}
    assert all(row["reason"] and row["code"].startswith("MF") for row in rows)
    counts = Counter((row["round"], row["verdict"]) for row in rows)
    table = {}
    for line in (ROOM / "README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and cells[0].isdigit():
            table[cells[0]] = cells[2:]
    assert table.keys() == {row["round"] for row in rows}
    for number, (found, right, wrong, share) in table.items():
        good, bad = counts[number, "right"], counts[number, "wrong"]
        assert (int(found), int(right), int(wrong)) == (good + bad, good, bad)
        assert share == f"{good / (good + bad):.0%}"
