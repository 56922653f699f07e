"""Stages ``plan`` and ``probe``: what memfit predicts, and what the prediction costs."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.accuracy.case import Case
from benchmarks.accuracy.child import Run, run

ROOT = Path(__file__).parents[2]
FITS, DOES_NOT_FIT = 0, 3
PLAN_SECONDS = 180.0  # after which a plan has not answered
_KEYS = ("peak_bytes", "upper_bytes", "limit_bytes", "fits", "phases", "method", "doubt", "notes")


def predict(case: Case, option: str) -> dict[str, Any]:
    """Ask memfit for the peak of a case, with nothing kept from an earlier prediction.

    `option` is that of the way to plan: `--quick`, `--probe`, or none.
    """
    command = [sys.executable, "-m", "memfit", "plan", "--format", "json"]
    command += [option] if option else []
    command += [str(case.path), "--", *case.args]
    with tempfile.TemporaryDirectory() as cache:
        env = {"PYTHONPATH": _python_path(), "XDG_CACHE_HOME": cache}
        done = run(command, env, PLAN_SECONDS, every_s=0.5)
    answer, why = read_answer(done)
    return {
        "ok": answer is not None,
        "why": why,
        **{key: (answer or {}).get(key) for key in _KEYS},
        "seconds": round(done.seconds, 2),
        "exit_code": done.exit_code,
        "own_peak_bytes": done.peak.pss,
    }


def predict_busy(case: Case) -> dict[str, Any]:
    """The same without a rehearsal, while two other processes keep both cores busy."""
    with _busy(2):
        return predict(case, "--quick")


@contextlib.contextmanager
def _busy(count: int) -> Iterator[None]:
    """So many processes that compute; each ends by itself should this one be killed."""
    program = "import time\nend = time.monotonic() + 300\nwhile time.monotonic() < end: pass"
    processes = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def read_answer(done: Run) -> tuple[dict[str, Any] | None, str | None]:
    """Return what a plan printed, or why that is no answer."""
    if done.stopped or done.exit_code not in (FITS, DOES_NOT_FIT):
        return None, done.complaint()
    try:
        answer = json.loads(done.stdout)
    except json.JSONDecodeError as error:
        return None, f"no JSON on stdout: {error}"
    if not isinstance(answer, dict) or not isinstance(answer.get("peak_bytes"), int):
        return None, "no whole number peak_bytes in the answer"
    return answer, None


def _python_path() -> str:
    """Let memfit be found from any folder, whether it is installed or not."""
    given = os.environ.get("PYTHONPATH")
    source = ROOT / "src"
    return os.pathsep.join([*([given] if given else []), str(source if source.is_dir() else ROOT)])
