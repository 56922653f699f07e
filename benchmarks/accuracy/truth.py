"""Stage ``truth``: the peak that each training run really has."""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.accuracy.case import Case
from benchmarks.accuracy.child import CALM, LIMIT_SECONDS, Run, run

TIMES = 3
DRAWN_SECONDS = 150.0


def peak_bytes(done: Run) -> int:
    """Return the peak of a tree.

    Where the tree is one process, its proportional size is its resident size, whose highest
    value the kernel keeps; it also knows of peaks that fall between two samples.
    """
    if len(done.tree_at_peak) == 1:
        return max(done.peak.pss, done.high_water_bytes)
    return done.peak.pss


def measure_often(case: Case, prefix: list[str]) -> dict[str, Any]:
    """Run a case three times: the median of its peaks, and all of them."""
    results = [measure(case, prefix, DRAWN_SECONDS) for _ in range(TIMES)]
    failed = next((result for result in results if not result["ok"]), None)
    if failed is not None:
        return {key: failed[key] for key in ("ok", "why", "peak_bytes", "seconds")}
    peaks = sorted(result["peak_bytes"] for result in results)
    return {
        "ok": True,
        "why": None,
        "peak_bytes": peaks[TIMES // 2],
        "peaks": peaks,
        "seconds": results[0]["seconds"],
    }


def measure(case: Case, prefix: list[str], limit_seconds: float = LIMIT_SECONDS) -> dict[str, Any]:
    """Run a case unmodified in a fresh process and return the peak of its tree."""
    command = [*prefix, sys.executable, str(case.path), *case.args]
    done = run(command, CALM, limit_seconds)
    failed = done.exit_code != 0 or done.stopped is not None
    return {
        "ok": not failed,
        "why": done.complaint() if failed else None,
        "peak_bytes": None if failed else peak_bytes(done),
        "private_libraries": bool(prefix),
        **done.measures(),
    }
