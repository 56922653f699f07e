"""Command line of the benchmark: ``python -m benchmarks.leaks STAGE``.

Stages that take long go on where they were ended: MEMFIT_SECONDS ends them after so many.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.leaks import overhead, table
from benchmarks.leaks.cases import REPORT, TUNING, Case, cases
from benchmarks.leaks.rivals import WAYS
from benchmarks.leaks.verdicts import truth_of, verdict_of
from benchmarks.stages import keep, run_stage, say

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).parent / "results"
SEEDS = range(4000, 4004)  # of the report: none of them was seen before
_IMPORTS = 4  # states of malloc's heap in which bytes that are far off are counted again
AT_ONCE = int(os.environ.get("MEMFIT_AT_ONCE", "2"))
_SECONDS = float(os.environ.get("MEMFIT_SECONDS", "1e9"))


def all_cases() -> list[Case]:
    """The cases of the report: one seed after the other, in an order that says nothing."""
    found = cases(SEEDS, *TUNING, *REPORT)
    random.Random(0).shuffle(found)
    return sorted(found, key=lambda case: case.seed)


def known(name: str) -> dict[str, Any]:
    """What was found before."""
    file = RESULTS / f"{name}.json"
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return found


def each(name: str, what: Callable[[Case], dict[str, Any]]) -> None:
    """Do something with each case that it was not done with yet, as long as there is time."""
    found, until = known(name), time.monotonic() + _SECONDS
    left = [case for case in all_cases() if case.name not in found]

    def one(case: Case) -> tuple[Case, dict[str, Any] | None]:
        return case, what(case) if time.monotonic() < until else None

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for case, result in pool.map(one, left):
            if result is not None:
                found[case.name] = result
                keep(RESULTS, name, found)
                say(
                    f"{len(found)} of {len(all_cases())}: {case.name}: {list(result.values())[3:6]}"
                )


def verdicts() -> None:
    """What memfit says."""
    each("verdicts", verdict_of)


def truths() -> None:
    """What the kernel counts in a run without memfit."""
    each("truths", lambda case: truth_of(case) if case.leaks else {"leaks": False})


def spread() -> None:
    """What plain loops take of those whose bytes are far off, after other imports."""
    far = table.far_off(known("verdicts"), known("truths"))
    found = {}
    for case in all_cases():
        if case.name in far:
            seen = [truth_of(case, imports=count) for count in range(_IMPORTS)]
            found[case.name] = [one["truth_per_frame"] for one in seen if "failed" not in one]
            say(f"{case.name}: {found[case.name]}")
    keep(RESULTS, "spread", found)


def rivals() -> None:
    """What others say."""
    each("rivals", _rivals_of)


def _rivals_of(case: Case) -> dict[str, Any]:
    said = known("verdicts").get(case.name, {}).get("verdict", "failed")
    found: dict[str, Any] = {"family": case.family, "leaks": case.leaks}
    found["memfit"] = said if said == "failed" else said == "leaking"
    for way in WAYS:
        words = [sys.executable, "-m", "benchmarks.leaks.rivals", way, case.family, str(case.seed)]
        try:
            done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=180)
            found[way] = json.loads(done.stdout)[way] if not done.returncode else "failed"
        except subprocess.TimeoutExpired:
            found[way] = "failed"
    return found


def real() -> None:
    """Environments of others, as they are and in older versions, which pip puts into .rivals."""
    found = []
    for which, packages in (
        ("filmed", "gymnasium-1.2.0"),
        ("filmed", "moviepy"),
        ("lander", "box2d"),
    ):
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / '.rivals' / packages}:{ROOT}"}
        words = [sys.executable, "-m", "benchmarks.leaks.real", which]
        done = subprocess.run(
            words, check=True, stdout=subprocess.PIPE, text=True, env=environment, timeout=600
        )
        found.append(json.loads(done.stdout))
    keep(RESULTS, "real", found)


def write_table() -> None:
    """The page."""
    page = table.page(
        known("verdicts"),
        known("truths"),
        known("rivals"),
        known("overhead"),
        _real(),
        known("spread"),
        known("earlier"),
    )
    (Path(__file__).parent / "README.md").write_text(page)


def _real() -> list[dict[str, Any]]:
    file = RESULTS / "real.json"
    found: list[dict[str, Any]] = json.loads(file.read_text()) if file.exists() else []
    return found


STAGES = {
    "verdicts": verdicts,
    "truths": truths,
    "spread": spread,
    "rivals": rivals,
    "real": real,
    "overhead": lambda: keep(RESULTS, "overhead", overhead.measured()),
    "table": write_table,
}

if __name__ == "__main__":
    run_stage("leaks", __doc__, STAGES)
