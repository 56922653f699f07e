"""Stages ``plan`` and ``whatif``: what memfit predicts of a loop, and what that costs."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from typing import Any

from benchmarks.accuracy.child import run
from benchmarks.accuracy.plan import read_answer
from benchmarks.loops.case import Loop
from benchmarks.loops.truth import ROOT, environment

LIMIT_SECONDS = 240.0
_NO_OPTIMIZER = re.compile(r"\b(no|without|never)\b[^.]{0,40}\boptimizer", re.IGNORECASE)
_KEYS = (
    "peak_bytes",
    "upper_bytes",
    "limit_bytes",
    "fits",
    "phases",
    "knobs",
    "method",
    "notes",
    "doubt",
)


def predict(case: Loop, changes: tuple[str, ...] = ()) -> dict[str, Any]:
    """Ask memfit for the peak of a loop, with nothing kept from an earlier prediction."""
    command = [sys.executable, "-m", "memfit", "plan", "--format", "json"]
    for change in changes:
        command += ["--set", change]
    command += case.target
    load = os.getloadavg()[0]
    paths = os.pathsep.join([str(ROOT / "src"), environment()["PYTHONPATH"]])
    with tempfile.TemporaryDirectory() as cache:
        changed = {"PYTHONPATH": paths, "XDG_CACHE_HOME": cache}
        done = run(command, changed, LIMIT_SECONDS, every_s=0.5)
    answer, why = read_answer(done)
    return {
        "ok": answer is not None,
        "why": why and why.replace(f"{ROOT}/", ""),
        **{key: (answer or {}).get(key) for key in _KEYS},
        "evidence": evidence(answer or {}),
        "says_no_optimizer": bool(_NO_OPTIMIZER.search(done.stdout + done.stderr)),
        "load": round(load, 1),
        "seconds": round(done.seconds, 2),
        "exit_code": done.exit_code,
        "own_peak_bytes": done.peak.pss,
    }


def evidence(answer: dict[str, Any]) -> dict[str, int]:
    """Bytes of the answer's rows by the evidence that they rest on."""
    found: dict[str, int] = {}
    for component in answer.get("components", ()):
        kind = component.get("evidence")
        name = str(kind.get("kind") if isinstance(kind, dict) else kind)
        found[name] = found.get(name, 0) + int(component.get("bytes") or 0)
    return found


def predict_twice(case: Loop) -> dict[str, Any]:
    """Ask what the peak would be with twice the case's setting."""
    return predict(case, (f"{case.doubled}={2 * case.settings[case.doubled]}",))
