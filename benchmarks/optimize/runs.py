"""Runs `memfit optimize` on a case, and the hand-made version of a system beside it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

from benchmarks.optimize.cases import Case
from memfit.api.optimize_runs import Runs
from memfit.model.job import Status
from memfit.sources.target import job_of

_SECONDS = 300.0  # of one run, beside other work
_WHOLE = 3600.0


def optimized(case: Case) -> dict[str, Any]:
    """What `memfit optimize` says of a case, or how it failed."""
    before, own = case.words, ()
    if "--" in case.words:
        at = case.words.index("--")
        before, own = case.words[:at], case.words[at:]
    command = [sys.executable, "-m", "memfit", "optimize", *before, "--quick"]
    command += ["--format", "json", "--quiet", "--timeout", f"{_SECONDS:.0f}", *own]
    started = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=_WHOLE, check=False)
    if done.returncode not in (0, 3):
        lines = done.stderr.strip().splitlines()
        return {"ok": False, "error": lines[-1] if lines else f"exit code {done.returncode}"}
    found: dict[str, Any] = json.loads(done.stdout)
    found["target"] = case.name
    for name in ("patch", "written", "confinement"):
        found.pop(name, None)
    return {"ok": True, "wall": round(time.monotonic() - started, 1), **found}


def fitted(case: Case, updates: int) -> dict[str, Any]:
    """The peak of the version that was made to fit by hand, after as many updates."""
    runs = Runs(job=job_of("", case.fitted[1:]), timeout=_SECONDS, updates=updates)
    run = runs.run_unchanged()
    if run.peak_bytes is None:
        return {"ok": False, "error": run.failed or str(Status.DIED)}
    return {"ok": True, "peak_bytes": run.peak_bytes}
