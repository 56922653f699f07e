"""Run a job in a child process that can die without taking anybody down.

The child has a time limit and a memory limit, a scratch folder of its own for temporary files, no
standard input, and an environment mark by which every process it leaves behind is found and ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memfit.errors import NeverLearned
from memfit.measure.kernel import proc
from memfit.units import format_bytes

MARK = "MEMFIT_CHILD"
_POLL_SECONDS = 0.02
_LOOK_SECONDS = 0.1  # between two looks at the tree's memory, which hold up what is looked at


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the child said, what it printed, and what it took."""

    fields: dict[str, Any]
    output: str
    peak_bytes: int
    seconds: float
    over_limit: bool = False


def run(
    job: dict[str, Any],
    *,
    timeout: float,
    memory: int,
    progress: Callable[[str], None] | None = None,
    alive: Callable[[int], None] | None = None,
) -> Answer:
    """Run `memfit.child` on a job; whatever happens, nothing is left running or lying about."""
    scratch = Path(tempfile.mkdtemp(prefix="memfit-", dir=_scratch_root()))
    mark = uuid.uuid4().hex
    started = time.monotonic()
    process: subprocess.Popen[bytes] | None = None
    try:
        (scratch / "tmp").mkdir()
        (scratch / "job.json").write_text(json.dumps({**job, "scratch": str(scratch)}))
        with (scratch / "output").open("wb") as output:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",  # a json.py beside the script must not become ours
                    "-m",
                    "memfit.child",
                    str(scratch / "job.json"),
                    str(scratch / "result.json"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_environment(scratch, mark),
                start_new_session=True,
            )
        return _wait(process, scratch, started, timeout, memory, progress, alive)
    finally:
        if process is not None:
            _end(process, mark)
        shutil.rmtree(scratch, ignore_errors=True)


def _scratch_root() -> str | None:
    """Where scratch folders go: a long TMPDIR leaves no room for the names of worker sockets."""
    usual = tempfile.gettempdir()
    return "/tmp" if len(usual) > 40 and os.access("/tmp", os.W_OK) else usual


def _environment(scratch: Path, mark: str) -> dict[str, str]:
    source = str(Path(__file__).resolve().parents[3])
    path = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    return {
        # Threads that wait at a barrier sleep: on a busy machine, spinning ones would make tenths
        # of a second seconds, and a plan must not depend on what else is running.
        "OMP_WAIT_POLICY": "PASSIVE",
        **os.environ,
        MARK: mark,
        "TMPDIR": str(scratch / "tmp"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "WANDB_MODE": "disabled",
        "PYTHONPATH": os.pathsep.join(path if source in path else [*path, source]),
    }


def _wait(
    process: subprocess.Popen[bytes],
    scratch: Path,
    started: float,
    timeout: float,
    memory: int,
    progress: Callable[[str], None] | None,
    alive: Callable[[int], None] | None,
) -> Answer:
    result = scratch / "result.json"
    peak = 0
    over = False
    said = ""
    next_look = 0.0
    while process.poll() is None and not result.exists():
        now = time.monotonic() - started
        if now >= next_look:
            peak = max(peak, proc.tree_bytes(process.pid))
            next_look = time.monotonic() - started + _LOOK_SECONDS
            if alive is not None:
                alive(peak)
        if peak > memory:
            over = True
            break
        if now > timeout:
            raise NeverLearned(
                f"the target did not begin to learn within {timeout:.0f} s: "
                "give it more time with --timeout SECONDS, or describe the run in a spec",
                output=_read(scratch),
            )
        stage = scratch / "stage"
        if progress and stage.exists() and (text := stage.read_text()) != said:
            progress(said := text)
        time.sleep(_POLL_SECONDS)
    fields: dict[str, Any] = {"status": "died", "code": process.poll()}
    if over:
        fields = {"status": "over limit", "memory": format_bytes(memory)}
    elif result.exists():
        fields = json.loads(result.read_text())
    return Answer(
        fields=fields,
        output=_read(scratch),
        peak_bytes=max(peak, fields.get("own_peak", 0)),
        seconds=time.monotonic() - started,
        over_limit=over,
    )


def _read(scratch: Path) -> str:
    return (scratch / "output").read_text(errors="replace")


def _end(process: subprocess.Popen[bytes], mark: str) -> None:
    """End the child, its group, and whatever of its descendants left the group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()
    for pid in proc.marked(MARK, mark):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
