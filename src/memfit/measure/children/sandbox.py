"""Run a job in a child process that can die without taking anybody down.

The child has a time limit and a memory limit, a scratch folder of its own for temporary files, no
standard input, and an environment mark by which every process it leaves behind is found and ended.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from memfit.measure.children.process_lifetime import own_session, signal_all
from memfit.measure.children.supervision import Supervised, supervise
from memfit.measure.kernel import limits, proc
from memfit.model.job import Answer, Job, Status
from memfit.model.json_loader import from_json, to_json
from memfit.units import format_bytes

MARK = "MEMFIT_CHILD"

# The share of this machine's memory that a child may take: the rest is for those who were here
# before, and for what the child's own forks hold beyond it.
ROOM = 0.85


@dataclass(frozen=True, kw_only=True)
class Ended(Supervised):
    """What the child took, answered and printed."""

    answer: Answer
    output: str


def room() -> int:
    """How much a child may take here."""
    return int(limits.memory_limit().bytes * ROOM)


def run(
    job: Job,
    *,
    timeout: float,
    memory: int,
    alive: Callable[[int], None] | None = None,
) -> Ended:
    """Run `memfit.child` on a job; whatever happens, nothing is left running or lying about."""
    scratch = Path(tempfile.mkdtemp(prefix="memfit-", dir=_scratch_root()))
    given, result, printed = (scratch / name for name in ("job.json", "result.json", "output"))
    mark = uuid.uuid4().hex
    # -P: a json.py beside the script must not become ours.
    command = [sys.executable, "-P", "-m", "memfit.child", str(os.getpid())]
    command += map(str, (given, result, scratch))
    try:
        (scratch / "tmp").mkdir()
        given.write_text(json.dumps(to_json(job)))
        with (
            printed.open("wb") as output,
            own_session(command, output, _environment(scratch, mark)) as process,
        ):
            seen = supervise(
                process, memory=memory, timeout=timeout, alive=alive, until=result.exists
            )
        if seen.over_limit:
            answer = Answer(status=Status.OVER_LIMIT, reason=format_bytes(memory))
        elif seen.timed_out:
            answer = Answer(status=Status.TIMED_OUT, reason=f"{timeout:.0f} s")
        elif result.exists():
            answer = from_json(Answer, json.loads(result.read_text()))
        else:
            answer = Answer(status=Status.DIED, exit_code=seen.exit_code)
        return Ended(**vars(seen), answer=answer, output=printed.read_text(errors="replace"))
    finally:
        signal_all(proc.marked(MARK, mark), signal.SIGKILL)  # what left the child's session
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
