"""Run a job in a child process that can die without taking anybody down.

The child has a time limit and a memory limit, a scratch folder of its own for temporary files and
no standard input. Where the kernel allows, it has namespaces of its own: what it does to files,
shared memory and processes vanishes with it, and there is no network unless the job says so. A
warden stands between it and memfit, and ends all that it has started.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from memfit.measure.children import warden
from memfit.measure.children.private_files import remove
from memfit.measure.children.process_lifetime import start
from memfit.measure.children.supervision import Supervised, supervise
from memfit.measure.children.way import Way
from memfit.measure.kernel import limits, proc
from memfit.model.confinement import Confinement
from memfit.model.job import Answer, Job, Look, Status
from memfit.model.json_loader import from_json, to_json
from memfit.model.progress_file import PROGRESS, read_progress
from memfit.units import format_bytes

# The share of this machine's memory that a child may take: the rest is for those who were here
# before, and for what the child's own forks hold beyond it.
ROOM = 0.85

_KILLED = -9  # the exit code where nobody was left to tell another
_START_SECONDS = 30.0
_refusals: list[str] = []  # why there were no namespaces: the next child does not try again


@dataclass(frozen=True, kw_only=True)
class Ended(Supervised):
    """What the child took, answered and printed.

    `refused` is why it had no namespaces.
    """

    answer: Answer
    output: str
    refused: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        """What plan and sweep say of a child that was held by less than namespaces."""
        behind = {Confinement.LANDLOCK: " and Landlock", Confinement.AUDITING: ""}
        if self.answer.confinement not in behind:
            return ()
        note = (
            f"this kernel gives no namespaces ({self.refused or 'none were asked for'}): a shield"
            f"{behind[self.answer.confinement]} kept the script from changing files, and "
            "docs/confinement.md says what that leaves open"
        )
        return (note,)


def room() -> int:
    """How much a child may take here."""
    return int(limits.memory_limit().bytes * ROOM)


def run(
    job: Job,
    *,
    timeout: float,
    memory: int,
    alive: Callable[[int], None] | None = None,
    way: Way = Way.NAMESPACES,
) -> Ended:
    """Run `memfit.child` on a job; whatever happens, nothing is left running or lying about."""
    with held(job, way=way) as child:
        seen = supervise(
            child,
            tree=child.tree,
            memory=memory,
            timeout=timeout,
            alive=alive,
            until=child.has_answered,
        )
        return child.ended(seen, memory=memory, timeout=timeout)


@contextmanager
def held(
    job: Job, *, way: Way = Way.NAMESPACES, before: Callable[[Path], None] = lambda _: None
) -> Iterator[HeldChild]:
    """`memfit.child` on a job, for who waits for it in a way of their own; gone in the end.

    `before` gets its scratch folder before it begins.
    """
    folder = Path(tempfile.mkdtemp(prefix="memfit-", dir=_scratch_root()))
    scratch = folder / warden.KEPT
    given, result, printed = (scratch / name for name in ("job.json", "result.json", "output"))
    # -P: a json.py beside the script must not become ours.
    command = [sys.executable, "-P", "-m", "memfit.child", *map(str, (given, result, scratch))]
    try:
        (scratch / "tmp").mkdir(parents=True)
        given.write_text(json.dumps(to_json(job)))
        before(scratch)
        with (
            printed.open("wb") as output,
            _held(command, folder, output, job, way=way) as child,
        ):
            yield child
    finally:
        _to_its_end(lambda: remove(str(folder)))


@dataclass(kw_only=True)
class HeldChild:
    """A child that runs below its warden; `status` is what that tells."""

    warden: subprocess.Popen[bytes]
    status: BinaryIO
    tree: proc.Tree
    scratch: Path
    refused: str
    exit_code: int | None = None

    @property
    def pid(self) -> int:
        return self.tree.main

    def poll(self) -> int | None:
        """Its exit code, None as long as anything of it runs."""
        if self.exit_code is None and self.warden.poll() is not None:
            said = self.status.readline().split()
            self.exit_code = int(said[1]) if said else _KILLED
        return self.exit_code

    def has_answered(self) -> bool:
        """Whether its answer is there."""
        return (self.scratch / "result.json").exists()

    def ended(self, seen: Supervised, *, memory: int, timeout: float) -> Ended:
        """What it took, answered and printed, or why there is no answer."""
        if seen.over_limit:
            answer = Answer(status=Status.OVER_LIMIT, reason=format_bytes(memory))
        elif seen.timed_out:
            answer = Answer(status=Status.TIMED_OUT, reason=f"{timeout:.0f} s")
        elif self.has_answered():
            answer = from_json(Answer, json.loads((self.scratch / "result.json").read_text()))
        else:
            answer = Answer(status=Status.DIED, exit_code=seen.exit_code)
        if answer.progress is None:
            answer = replace(answer, progress=read_progress(self.scratch / PROGRESS))
        said = (self.scratch / "output").read_text(errors="replace")
        return Ended(**vars(seen), answer=answer, output=said, refused=self.refused)


@contextmanager
def _held(
    command: Sequence[str], folder: Path, output: BinaryIO, job: Job, *, way: Way
) -> Iterator[HeldChild]:
    """A child below its warden, in namespaces if the kernel gives them."""
    why = _refusals[0] if way is Way.NAMESPACES and _refusals else ""
    while True:
        used = Way.SHIELD if why else way
        with _started([*command, used], folder, output, job, way=used) as (
            process,
            status,
        ):
            said = _first_words(status)
            if said[0] == "started":
                tree = proc.Tree(main=int(said[1]), keeper=int(said[2]))
                yield HeldChild(
                    warden=process,
                    status=status,
                    tree=tree,
                    scratch=folder / warden.KEPT,
                    refused=why,
                )
                return
        why = " ".join(said[1:])
        if used is Way.SHIELD:
            raise OSError(f"a child process cannot be started: {why}")
        _refusals.append(why)


@contextmanager
def _started(
    command: Sequence[str], folder: Path, output: BinaryIO, job: Job, *, way: Way
) -> Iterator[tuple[subprocess.Popen[bytes], BinaryIO]]:
    """A warden, and what it tells; it is ended with all below it."""
    told, tell = os.pipe()
    words = [sys.executable, "-S", "-P", "-X", "utf8", "-m", warden.__name__]
    words += [str(os.getpid()), str(tell), str(folder), way, warden.NETWORK if job.network else ""]
    with open(told, "rb") as status:
        try:
            process = start(
                [*words, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_environment(folder / warden.KEPT / "tmp") | _of_its_own(job),
                start_new_session=True,
                pass_fds=(tell,),
            )
        finally:
            os.close(tell)
        try:
            yield process, status
        finally:
            if process.poll() is None:
                process.send_signal(warden.END)
                _to_its_end(process.wait)


def _to_its_end(action: Callable[[], object]) -> None:
    """Do it, and once more where Ctrl-C came meanwhile: nothing is left behind by halves."""
    try:
        action()
    except KeyboardInterrupt:
        action()
        raise


def _first_words(status: BinaryIO) -> list[str]:
    """How a child has started, or that it could not be."""
    heard, _, _ = select.select([status], [], [], _START_SECONDS)
    if not heard:
        return ["failed", f"nothing was heard of it for {_START_SECONDS:.0f} s"]
    return status.readline().decode(errors="replace").split() or ["failed", "its warden has ended"]


def _scratch_root() -> str | None:
    """Where scratch folders go: a long TMPDIR leaves no room for the names of worker sockets."""
    usual = tempfile.gettempdir()
    return "/tmp" if len(usual) > 40 and os.access("/tmp", os.W_OK) else usual


def _of_its_own(job: Job) -> dict[str, str]:
    """What a job has in its environment beside what every child has."""
    # Sets of texts are in another order in each process, unless this is given.
    order = {"PYTHONHASHSEED": "0"} if job.look is Look.TRAIN else {}
    return {**order, **job.changes.variables}


def _environment(temporary: Path) -> dict[str, str]:
    source = str(Path(__file__).resolve().parents[3])
    path = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    return {
        # Threads that wait at a barrier sleep: on a busy machine, spinning ones would make tenths
        # of a second seconds, and a plan must not depend on what else is running.
        "OMP_WAIT_POLICY": "PASSIVE",
        **os.environ,
        "TMPDIR": str(temporary),
        "PYTHONDONTWRITEBYTECODE": "1",
        "WANDB_MODE": "disabled",
        "PYTHONPATH": os.pathsep.join(path if source in path else [*path, source]),
    }
