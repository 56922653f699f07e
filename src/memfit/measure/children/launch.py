"""Start a command so that every Python below it can be asked who holds its memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memfit.errors import UsageError
from memfit.measure.children.process_lifetime import end_with_parent, start

if TYPE_CHECKING:
    from memfit.measure.record.recorder import Recorder

# Where a process finds the recording that it is under.
RECORDING = "MEMFIT_RECORDING"
SITE = Path(__file__).resolve().parents[2] / "inside" / "site"
_PASSED_ON = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT),
    *(signal.SIGUSR1, signal.SIGUSR2),
)
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


def run(command: Sequence[str], recorder: Recorder, *, recording: Path) -> int:
    """Run a command to its end and return its exit code, 128 + n where signal n ended it.

    Signals go on to the command, which ends with memfit however memfit ends.
    """
    if not command:
        raise UsageError("nothing to run: give the command after --, as in -- python train.py")
    sys.stdout.flush()
    sys.stderr.flush()
    with _signals_held() as before:
        process = _started(command, before, recording)
        try:
            recorder.begin(process.pid)
            code = _waited(process, recorder, signals=before is not None)
        except BaseException:
            process.kill()
            process.wait()
            raise
    code = code if code >= 0 else 128 - code
    recorder.end(code)
    return code


def _started(
    command: Sequence[str], mask: set[signal.Signals] | None, recording: Path
) -> subprocess.Popen[bytes]:
    parent = os.getpid()

    def in_child() -> None:
        end_with_parent(parent)
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    return start(command, env=environment(recording=recording), preexec_fn=in_child)


@contextmanager
def _signals_held() -> Iterator[set[signal.Signals] | None]:
    """Keep signals for `_waited`, and give the ones from before; None where another thread calls.

    Nothing may be lost between the command's start and the first wait, so they are blocked.
    """
    if threading.current_thread() is not threading.main_thread():
        yield None
        return
    child = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, no exit code would come
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*_PASSED_ON, signal.SIGCHLD})
    try:
        yield {signal.Signals(number) for number in before}
    finally:
        # What came after the command had ended was meant for it.
        while signal.sigtimedwait({*_PASSED_ON, signal.SIGCHLD}, 0) is not None:
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGCHLD, child)


def _waited(process: subprocess.Popen[bytes], recorder: Recorder, *, signals: bool) -> int:
    """Pass signals on, and look, until the command has ended."""
    while True:
        code = process.poll()
        if code is not None:
            return code
        seconds = recorder.look()
        if not signals:  # another thread than the main one gets none
            with suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
            continue
        info = signal.sigtimedwait({*_PASSED_ON, signal.SIGCHLD}, seconds)
        # Python gives back a number that is no signal's where it was held still meanwhile.
        if info is None or info.si_signo not in _PASSED_ON:
            continue
        if info.si_code != _FROM_KERNEL:
            process.send_signal(info.si_signo)
