"""Stages ``truth`` and ``twice``: the peak that each loop really has, and the time of a cycle."""

from __future__ import annotations

import os
import sys
from typing import Any

from benchmarks.accuracy.child import CALM, run
from benchmarks.accuracy.truth import peak_bytes
from benchmarks.loops.case import SCRIPTS, Loop

ROOT = SCRIPTS.parents[2]
LIMIT_SECONDS = 240.0


def environment() -> dict[str, str]:
    """Let packages beside the scripts be found, and the runner of notebooks."""
    given = os.environ.get("PYTHONPATH")
    paths = [str(SCRIPTS), str(ROOT), *([given] if given else [])]
    return {**CALM, "PYTHONPATH": os.pathsep.join(paths)}


def used(case: Loop) -> str:
    """A program that maps the libraries which a run of the case maps."""
    imports = ["torch", "gymnasium", *case.needs]
    lines = [f"import {', '.join(imports)}", _USE, _LIST]
    return "\n".join(lines)


_USE = """
import multiprocessing.connection, pickle, sys, zipfile
layer = torch.nn.Linear(256, 256)
optimizer = torch.optim.Adam(layer.parameters())
layer(torch.ones(256, 256)).sum().backward()
optimizer.step()
if "jax" in sys.modules:
    sys.modules["jax"].numpy.ones(4).sum()
"""
_LIST = """
paths = {line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if " /" in line}
sys.stdout.write("\\n".join(sorted(path for path in paths if path.startswith("/"))))
"""


def import_seconds(prefix: list[str], case: Loop) -> float:
    """How long the imports of a case take, which are no part of its cycles."""
    names = ", ".join(["gymnasium", *(case.needs or ("torch",))])
    return run([*prefix, sys.executable, "-c", f"import {names}"], environment()).seconds


def measure(case: Loop, prefix: list[str], imports: float) -> dict[str, Any]:
    """Run a loop unmodified in a fresh process and return the peak of its tree."""
    load = os.getloadavg()[0]
    done = run([*prefix, *case.command], environment(), LIMIT_SECONDS)
    failed = done.exit_code != 0 or done.stopped is not None
    return {
        "ok": not failed,
        "why": done.complaint() if failed else None,
        "peak_bytes": None if failed else peak_bytes(done),
        "private_libraries": bool(prefix),
        "load": round(load, 1),
        "import_seconds": round(imports, 2),
        "cycle_seconds": round(max(0.0, done.seconds - imports) / case.cycles, 3),
        **done.measures(),
    }
