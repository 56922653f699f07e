"""Command line of the benchmark: ``python -m benchmarks.optimize run``, then ``table``."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.optimize import table
from benchmarks.optimize.cases import CASES, EARLIER, REPORT, SYSTEM, TUNING
from benchmarks.optimize.runs import fitted, optimized
from benchmarks.stages import keep, say

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Run cases that have no result yet, or write the table of those that have."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.optimize", description=__doc__)
    parser.add_argument("stage", choices=("run", "table"))
    parser.add_argument("--only", action="append", metavar="NAME", help="only these cases")
    parser.add_argument(
        "--group", choices=(TUNING, EARLIER, REPORT, SYSTEM), help="only this group"
    )
    parser.add_argument("--again", action="store_true", help="also cases that have a result")
    asked = parser.parse_args()
    if asked.stage == "table":
        table.write(RESULTS)
        return
    for case in CASES:
        if (asked.only and case.name not in asked.only) or asked.group not in (None, case.group):
            continue
        if not asked.again and (RESULTS / f"{case.name}.json").exists():
            continue
        say(f"{case.name}: memfit optimize {' '.join(case.words)}")
        found = optimized(case)
        if found["ok"] and case.fitted:
            found["fitted"] = fitted(case, found["updates"])
        keep(RESULTS, case.name, found)
        say(f"{case.name}: {found.get('error') or found['peak_bytes']}")


if __name__ == "__main__":
    main()
