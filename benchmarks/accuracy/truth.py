"""Stage ``truth``: the peak that each training run really has."""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.accuracy.case import Case
from benchmarks.accuracy.child import CALM, Run, run


def peak_bytes(done: Run) -> int:
    """Return the peak of a tree.

    Where the tree is one process, its proportional size is its resident size, whose highest
    value the kernel keeps; it also knows of peaks that fall between two samples.
    """
    if len(done.tree_at_peak) == 1:
        return max(done.peak.pss, done.high_water_bytes)
    return done.peak.pss


def measure(case: Case, prefix: list[str]) -> dict[str, Any]:
    """Run a case unmodified in a fresh process and return the peak of its tree."""
    done = run([*prefix, sys.executable, str(case.path), *case.args], CALM)
    failed = done.exit_code != 0 or done.stopped is not None
    return {
        "ok": not failed,
        "why": done.complaint() if failed else None,
        "peak_bytes": None if failed else peak_bytes(done),
        "private_libraries": bool(prefix),
        **done.measures(),
    }
