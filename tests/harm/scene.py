"""One training with memfit around it, something that goes wrong, and what becomes of the training.

Each fault is played in a process of its own (`python -m tests.harm NAME`), which takes in whatever
process is left behind, and has its own mounts: a disk that is full is full for nobody else.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memfit.measure.kernel import proc
from tests import faults
from tests.harm import training
from tests.harm.training import CODE

PROGRAM = training.__file__
SECONDS = 150.0
MEMFIT = (sys.executable, "-m", "memfit")
_NEWNS, _NEWUSER, _SUBREAPER = 0x20000, 0x10000000, 36
_SHM = Path("/dev/shm")


class NotHere(Exception):
    """The fault cannot be injected on this machine; the message says why."""


def nothing(scene: Scene) -> None:
    """The training itself is the fault."""


def usual() -> AbstractContextManager[dict[str, Any]]:
    """Streams as they are where nobody gives others."""
    return contextlib.nullcontext({})


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Something that goes wrong while a training runs."""

    name: str
    before: Callable[[Scene], None] = nothing  # prepared before the training begins
    inject: Callable[[Scene], None] = nothing
    kind: str = "numpy"  # of training, by `tests.harm.training`
    own: str = "-"  # what the training does beside training
    run: bool = True  # under `memfit run`, where `track()` adds to the recording
    record: str = ""  # where `track()` records itself
    options: tuple[str, ...] = ()
    memfit: tuple[str, ...] = MEMFIT
    prefix: tuple[str, ...] = ()
    streams: Callable[[], AbstractContextManager[dict[str, Any]]] = usual
    pause: float = 30.0  # seconds between two steps, at most, also on a busy machine
    code: int = CODE
    code_of: str = "memfit"  # who tells the exit code: memfit, keeper, training or any of them
    leaves: tuple[str, ...] = ()  # files in the recording's folder beside the recording
    quick: bool = False  # in the slice of `make test`


@dataclass(kw_only=True)
class Scene:
    """A training that runs, and all around it."""

    fault: Fault
    folder: Path
    held: float  # seconds for which something is stopped
    process: subprocess.Popen[bytes] = field(init=False)
    training: int = field(init=False, default=0)
    keeper: int = field(init=False, default=0)
    looks: dict[str, Any] = field(default_factory=dict)
    looked: bool = False
    undo: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def records(self) -> Path:
        return self.folder / "records"

    @property
    def path(self) -> Path:
        return self.records / "run.db"

    def start(self, streams: dict[str, Any]) -> None:
        """Start the training, and wait until it trains and is recorded."""
        for name in ("records", "tmp", "own"):
            (self.folder / name).mkdir(exist_ok=True)
        fault = self.fault
        fault.before(self)
        record = fault.record or ("run" if fault.run else "-")
        words = [*fault.prefix, sys.executable, PROGRAM, str(self.folder / "own")]
        words += [fault.kind, fault.own, record.format(records=self.records)]
        if fault.run:
            words = [*fault.memfit, "run", "-o", str(self.path), *fault.options, "--", *words]
        given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, **streams}
        if "stderr" not in given:
            given["stderr"] = self.undo.enter_context((self.folder / "said").open("wb"))
        self.process = subprocess.Popen(words, env=self.environment(), **given)
        ready = self.folder / "own" / "ready"
        self.wait(lambda: ready.exists() or self.process.poll() is not None, "it does not begin")
        if not ready.exists():
            raise AssertionError(f"it has ended with {self.process.poll()} before: {self.said()}")
        self.training = _outside(int(ready.read_text()))
        if fault.run:
            self.keeper = proc.children(self.process.pid)[0]
            self.wait(lambda: faults.readings(self.path) >= 2, "it is not recorded")

    def environment(self) -> dict[str, str]:
        return {**os.environ, "TMPDIR": str(self.folder / "tmp"), "OMP_NUM_THREADS": "1"}

    def said(self) -> str:
        return proc.text(self.folder / "said")

    def wait(self, true: Callable[[], object], otherwise: str) -> None:
        assert faults.until(true, SECONDS), otherwise

    def cycles(self) -> int:
        return int(proc.text(self.folder / "own" / "cycles") or 0)

    def goes_on(self) -> None:
        """Wait until the training has come further, whatever holds memfit."""
        before = self.cycles()
        self.wait(lambda: self.cycles() > before + 1, "the training does not go on")

    def memfit(self, *words: str, **more: Any) -> subprocess.Popen[bytes]:
        """Another memfit, beside the training."""
        given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, **more}
        given.setdefault("stderr", subprocess.DEVNULL)
        return subprocess.Popen([*MEMFIT, *words], env=self.environment(), **given)

    def look(self) -> None:
        """Explain the training from outside and inside, and watch it, as things are."""
        self.looked, pid = True, str(self.training)
        for name, words in {
            "inside": ("explain", pid, "--no-native", "--format", "json"),
            "outside": ("explain", pid, "--no-inside", "--format", "md"),
            "watch": ("watch", pid, "--once"),
        }.items():
            done = subprocess.run(
                [*MEMFIT, *words],
                env=self.environment(),
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
            traceback = b"Traceback" in done.stderr
            self.looks[name] = {"code": done.returncode, "traceback": traceback}
            if traceback or done.returncode not in (0, 2):
                self.looks[name]["said"] = done.stderr.decode(errors="replace")[-2000:]

    def finish(self) -> dict[str, Any]:
        """Let the training end; how it did."""
        (self.folder / "own" / "end").touch()
        until = time.monotonic() + SECONDS
        codes: dict[int, int] = {}
        while self.process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        self.undo.close()
        # Whoever was below, and has lost those above, is ours now.
        while (below := _below()) and time.monotonic() < until:
            _reap(codes, below)
            time.sleep(0.02)
        told = {
            "memfit": self.process.returncode,
            "keeper": codes.get(self.keeper),
            "training": codes.get(self.training),
        }
        code = told.get(self.fault.code_of)
        if self.fault.code_of == "any":
            code = next((one for one in told.values() if one == self.fault.code), code)
        said = proc.text(self.folder / "own" / "said")
        return {"code": code, "left": _below(), **(json.loads(said) if said else {})}


def play(fault: Fault, *, held: float) -> dict[str, Any]:
    """Let it happen, and say what became of the training and what is left."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1)
    _own_mounts()
    shared, groups = set(os.listdir(_SHM)), faults.groups()
    folder = Path(tempfile.mkdtemp(prefix="memfit-harm-"))
    scene = Scene(fault=fault, folder=folder, held=held)
    found: dict[str, Any] = {"name": fault.name, "kind": fault.kind, "pause": fault.pause}
    try:
        with fault.streams() as streams:
            scene.start(streams)
            fault.inject(scene)
            if not scene.looked:
                scene.look()
            found |= scene.finish()
        found |= {"looks": scene.looks, "traceback": "Traceback" in scene.said()}
        found["files"] = sorted(_files(scene))
        found["shared"] = sorted(set(os.listdir(_SHM)) - shared)
        found["groups"] = [str(group) for group in faults.groups() - groups if _idle(group)]
    except NotHere as why:
        found["not_here"] = str(why)
    except (AssertionError, subprocess.TimeoutExpired) as error:
        found["harm"] = f"{error}; it said: {scene.said()[-2000:]}"
    finally:
        scene.undo.close()
        for pid in _below():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _remove(folder)
    return found


def wrong(found: dict[str, Any], fault: Fault, digests: Sequence[str]) -> list[str]:
    """All that is not as it is without memfit."""
    if "harm" in found:
        return [found["harm"]]
    said = []
    if found["code"] != fault.code:
        said.append(f"exit code {found['code']} instead of {fault.code}")
    if found.get("digests") != list(digests):
        said.append(f"parameters {found.get('digests')} instead of {list(digests)}")
    if found.get("wrong"):
        said.append(found["wrong"])
    if found.get("longest", 0.0) > fault.pause:
        said.append(f"no step for {found['longest']:.1f} s")
    left = ("left", "files", "shared", "groups")
    said += [f"{what} left behind: {found[what]}" for what in left if found[what]]
    if found["traceback"]:
        said.append("memfit said a traceback")
    said += [f"{name}: {one}" for name, one in found["looks"].items() if "said" in one]
    return said


def alone(kind: str, own: str) -> dict[str, Any]:
    """The same training without memfit."""
    with tempfile.TemporaryDirectory(prefix="memfit-harm-") as place:
        (Path(place) / "end").touch()
        done = subprocess.run([sys.executable, PROGRAM, place, kind, own, "-"], check=False)
        said = proc.text(Path(place) / "said")
        return {"code": done.returncode, **(json.loads(said) if said else {})}


def _outside(number: int) -> int:
    """The number by which we know a training that knows itself by this one."""
    for pid in _below():
        own = [
            line.split()[-1]
            for line in proc.text(f"/proc/{pid}/status").splitlines()
            if line.startswith("NSpid:")
        ]
        if own == [str(number)] and PROGRAM in proc.text(f"/proc/{pid}/cmdline"):
            return pid
    raise AssertionError(f"the training is not there as {number}")


def _below() -> list[int]:
    return proc.descendants(os.getpid())


def _reap(codes: dict[int, int], pids: Sequence[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                codes[pid] = code if code >= 0 else 128 - code


def _files(scene: Scene) -> Iterator[str]:
    """What lies about that is neither the training's nor the recording."""
    known = {scene.path.name, "own.db", *scene.fault.leaves}
    if scene.fault.code_of != "memfit":  # it was killed: the rest of the recording is beside it
        known |= {f"{scene.path.name}-wal", f"{scene.path.name}-shm"}
    if scene.records.is_dir():
        yield from (name for name in os.listdir(scene.records) if name not in known)
    yield from (f"tmp/{name}" for name in os.listdir(scene.folder / "tmp"))


def _idle(group: Path) -> bool:
    """A group that stays although nothing is in it."""
    time.sleep(1.0)
    return group.exists() and not proc.text(group / "cgroup.procs").split()


def _own_mounts() -> None:
    """Mounts of our own, with empty shared memory; without, where neither is permitted."""
    libc = ctypes.CDLL(None)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_NEWNS):
        if libc.unshare(_NEWNS | _NEWUSER):
            return
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    with contextlib.suppress(NotHere):
        _mount("--make-rprivate", "/")
        mount_tmpfs(_SHM, "size=1g")


def _mount(*words: str) -> None:
    done = subprocess.run(["mount", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotHere(f"nothing may be mounted here: {done.stderr.strip()}")


def mount_tmpfs(place: Path, options: str) -> None:
    """A disk of its own at this place, for this process and those that it starts."""
    place.mkdir(exist_ok=True)
    _mount("-t", "tmpfs", "-o", options, "memfit-harm", str(place))


def _remove(folder: Path) -> None:
    place = folder / "records"
    subprocess.run(["chattr", "-R", "-i", str(place)], capture_output=True, check=False)
    subprocess.run(["umount", "-l", str(place)], capture_output=True, check=False)
    shutil.rmtree(folder, ignore_errors=True)
