"""Stage ``baselines``: what is said of the same runs without memfit."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.accuracy.case import Case
from benchmarks.accuracy.child import CALM, run

RUNNER = Path(__file__).parent / "baseline_runner.py"


def measure(case: Case) -> dict[str, Any]:
    """Run a case up to its first update and return the three baselines' peaks.

    Of a script that trains more than one model, the largest figures count.
    """
    done = run([sys.executable, str(RUNNER), str(case.path), *case.args], CALM)
    marked = [line for line in done.stdout.splitlines() if line.startswith("baselines: ")]
    result: dict[str, Any] = {
        "ok": bool(marked),
        "why": None if marked else done.complaint(),
        "by_hand_bytes": None,
        "mem_tracker_bytes": None,
        "mem_tracker_why": None,
        "sb3_check_bytes": None,
        "seconds": round(done.seconds, 2),
    }
    for line in marked:
        for key, value in json.loads(line.partition(": ")[2]).items():
            result[key] = max(value, result.get(key) or value)
    if marked and result["mem_tracker_bytes"] is None and not result["mem_tracker_why"]:
        result["mem_tracker_why"] = done.complaint()
    return result
