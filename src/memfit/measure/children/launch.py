"""Start a command so that all it starts stays below one process, and every Python can be asked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from memfit.errors import UsageError
from memfit.measure.children import keeper
from memfit.measure.children.process_lifetime import cannot_start, end_all, start
from memfit.measure.kernel import proc
from memfit.measure.kernel.cgroup import Group, memory_group

if TYPE_CHECKING:
    from memfit.measure.record.recorder import Recorder

# Where a process finds the recording that it is under.
RECORDING = "MEMFIT_RECORDING"
SITE = Path(__file__).resolve().parents[2] / "inside" / "site"
_PASSED_ON = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT),
    *(signal.SIGUSR1, signal.SIGUSR2),
)
_HELD = {*_PASSED_ON, signal.SIGCHLD}
_FROM_KERNEL = 128  # si_code: a key of the terminal, which the command has got as well


def environment(
    given: Mapping[str, str] | None = None, recording: Path | None = None
) -> dict[str, str]:
    """An environment in which every Python listens, and knows the recording that it is under."""
    found = dict(os.environ if given is None else given)
    path = found.get("PYTHONPATH")
    found["PYTHONPATH"] = f"{SITE}{os.pathsep}{path}" if path else str(SITE)
    if recording is not None:
        found[RECORDING] = str(recording.absolute())
    return found


def run(
    command: Sequence[str],
    recorder: Recorder,
    *,
    recording: Path,
    net: int | None,
    descriptors: Sequence[int] = (),
) -> int:
    """Run a command to its end and return its exit code, 128 + n where signal n ended it.

    Signals go on to the command. With `net`, the kernel holds it below so much where it may; where
    it may not, the command ends with memfit. Without, it goes on however memfit ends. Descriptors
    are given away: the command has them under their numbers, and nobody else here.
    """
    if not command or not command[0]:
        raise UsageError("nothing to run: give the command after --, as in -- python train.py")
    with suppress(OSError, AttributeError):  # closed, or nobody reads
        sys.stdout.flush()
        sys.stderr.flush()
    with (
        _signals_held() as before,
        memory_group(net) as group,
        _started(
            command, before, recording, group, limited=net is not None, descriptors=descriptors
        ) as kept,
    ):
        recorder.begin(kept.tree, kept.group)
        code = _waited(kept, recorder)
        if kept.group is not None and code == 128 + signal.SIGKILL:
            kept.group.end_if_killed()
        _, *left = kept.status.readline().split() or (b"left",)
        recorder.end(code, left=[int(pid) for pid in left])
    return code


@dataclass(frozen=True, kw_only=True)
class _Kept:
    """A command that runs below its keeper; `status` is what that tells."""

    keeper: subprocess.Popen[bytes]
    status: BinaryIO
    tree: proc.Tree
    group: Group | None


@contextmanager
def _started(
    command: Sequence[str],
    mask: set[int],
    recording: Path,
    group: Group | None,
    *,
    limited: bool,
    descriptors: Sequence[int] = (),
) -> Iterator[_Kept]:
    told, tell = os.pipe()
    # -I -S -X utf8: nothing of the command's environment is for this one.
    words = [sys.executable, "-I", "-S", "-X", "utf8", keeper.__file__]
    words += [str(os.getpid()), str(tell), ",".join(map(str, mask))]
    words += [str(group.path) if group else "", "limited" if limited else ""]
    with open(told, "rb") as status:
        before = _blocked(signal.valid_signals())  # it inherits that: none is for the keeper
        try:
            process = start(
                [*words, *command],
                env=environment(recording=recording),
                pass_fds=(tell, *descriptors),
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            for number in {tell, *descriptors}:
                with suppress(OSError):  # closed by whoever gave it
                    os.close(number)
        said = status.readline().split()
        if not said or said[0] == b"failed":
            process.wait()
            reason = os.strerror(int(said[1])) if said else "its keeper has ended"
            raise cannot_start(command[0], reason)
        tree = proc.Tree(main=int(said[1]), keeper=process.pid)
        group = group if int(said[2]) else None
        try:
            yield _Kept(keeper=process, status=status, tree=tree, group=group)
        except BaseException:
            end_all(tree.members)
            process.kill()
            process.wait()
            raise


@contextmanager
def _signals_held() -> Iterator[set[int]]:
    """Keep signals for `_waited`, and give those that were held before.

    Nothing may be lost between the command's start and the first wait, so they are blocked. Another
    thread than the main one gets none, and leaves them alone.
    """
    if not _in_main_thread():
        yield _blocked(())
        return
    child = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, no exit code would come
    before = _blocked(_HELD)
    try:
        yield before
    finally:
        # What came after the command had ended was meant for it.
        while signal.sigtimedwait(_HELD, 0) is not None:
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGCHLD, child)


def _blocked(more: Iterable[int]) -> set[int]:
    """Block these signals as well; those that were blocked before."""
    return {int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, more)}


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _waited(kept: _Kept, recorder: Recorder) -> int:
    """Pass signals on, and look, until the command has ended; its exit code."""
    while True:
        code = kept.keeper.poll()
        if code is not None and code >= 0:
            return code
        if code is not None and not proc.resident(kept.tree.main):
            return 128 - code  # the keeper was killed, and with it the exit code was lost
        seconds = recorder.look()
        if not _in_main_thread():
            _wait(kept.keeper, seconds)
            continue
        info = signal.sigtimedwait(_HELD, seconds)
        # Python gives back a number that is no signal's where it was held still meanwhile.
        if info is None or info.si_signo not in _PASSED_ON:
            continue
        if info.si_code != _FROM_KERNEL:
            with suppress(ProcessLookupError, PermissionError):  # it is another user's by now
                os.kill(kept.tree.main, info.si_signo)


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    if process.returncode is not None:
        time.sleep(seconds)
        return
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
