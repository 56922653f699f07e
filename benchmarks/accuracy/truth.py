"""Stage ``truth``: the peak that each training run really has."""

from __future__ import annotations

import os
import sys
from typing import Any

from benchmarks.accuracy.case import Case
from benchmarks.accuracy.child import CALM, LIMIT_SECONDS, Run, run

DRAWN_SECONDS = 300.0
FIRST = 15  # steps of priority by which the sampler comes before what it looks at


def watched_closely() -> list[str]:
    """Let this process come first on a busy machine, and return what starts a run as usual.

    A sampler that has to wait for its turn misses peaks of trees. Where this is not allowed,
    measure trees on a quiet machine.
    """
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -FIRST)
    except PermissionError:
        return []
    return ["nice", "-n", str(FIRST)]


def peak_bytes(done: Run) -> int:
    """Return the peak of a tree.

    Where the tree is one process, its proportional size is its resident size, whose highest
    value the kernel keeps; it also knows of peaks that fall between two samples.
    """
    if len(done.tree_at_peak) == 1:
        return max(done.peak.pss, done.high_water_bytes)
    return done.peak.pss


def import_bytes(prefix: list[str]) -> int:
    """What the libraries of a drawn run take before it does anything."""
    program = "import sb3_contrib, stable_baselines3, torch; import time; time.sleep(0.5)"
    return peak_bytes(run([*prefix, sys.executable, "-c", program], CALM))


def measure_often(case: Case, prefix: list[str], times: int) -> dict[str, Any]:
    """Run a case so many times: the median of its peaks, and all of them."""
    results = [measure(case, prefix, DRAWN_SECONDS) for _ in range(times)]
    failed = next((result for result in results if not result["ok"]), None)
    if failed is not None:
        return {key: failed[key] for key in ("ok", "why", "peak_bytes", "seconds")}
    peaks = [result["peak_bytes"] for result in results]
    return {
        "ok": True,
        "why": None,
        "peak_bytes": sorted(peaks)[times // 2],
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
        "private_libraries": "unshare" in prefix,
        **done.measures(),
    }
