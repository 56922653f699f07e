"""`memfit.run` from Python: from any thread, whatever the caller's own functions do."""

from __future__ import annotations

import signal
import subprocess
import threading

import pytest

import memfit
from memfit.measure.kernel import proc
from memfit.measure.record import recorder
from memfit.measure.record.sampling import Sampler
from memfit.model import EventKind, Forecast, Reading, Trace
from tests.faults import python

GROWS = """
import time
kept = [bytearray(b"1") * (370 << 20)]
while True:
    kept.append(bytearray(b"1" * 2**20))
    time.sleep(0.02)
"""


RISES_AND_FALLS = """
import time
for amount in (40, 160, 20, 90, 120, 30, 260):
    kept = bytearray(b"1") * (amount << 20)
    time.sleep(0.8)
    del kept
"""


def test_each_new_peak_is_above_all_before() -> None:
    trace = memfit.run(python(RISES_AND_FALLS))
    peaks = [event for event in trace.events if event.kind is EventKind.PEAK]
    assert len(peaks) > 1
    for event in peaks:
        assert event.bytes >= max(r.bytes for r in trace.readings if r.seconds < event.seconds)


def test_two_threads_run_and_guard_at_the_same_time() -> None:
    found: dict[int, Trace] = {}
    commands = [python("import time; time.sleep(0.5); raise SystemExit(7)"), python(GROWS)]

    def work(number: int) -> None:
        found[number] = memfit.run(commands[number], limit=400 << 20)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0].exit_code == 7
    assert found[1].exit_code == 128 + signal.SIGTERM
    assert EventKind.TERMINATED in {event.kind for event in found[1].events}
    assert not [event for event in found[0].events if event.kind is EventKind.WARNING]


def test_a_caller_whose_functions_fail_gets_the_exit_code() -> None:
    def broken(text: str) -> None:
        raise ValueError(text)

    def broken_too(reading: Reading, forecast: Forecast | None) -> None:
        raise ValueError(reading)

    command = python("import time; time.sleep(0.5); raise SystemExit(7)")
    trace = memfit.run(command, say=broken, live=broken_too)
    assert trace.exit_code == 7 and trace.peak is not None
    assert trace.pid not in proc.processes()


def test_what_fails_before_the_first_reading_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries: list[proc.Tree] = []

    def sampler(tree: proc.Tree) -> Sampler:
        tries.append(tree)
        if len(tries) == 1:
            raise OSError("no descriptor is left")
        return Sampler(tree)

    monkeypatch.setattr(recorder, "Sampler", sampler)
    said: list[str] = []
    trace = memfit.run(python("import time; time.sleep(1); raise SystemExit(7)"), say=said.append)
    assert trace.exit_code == 7 and trace.peak is not None
    assert len(said) == 1 and "no descriptor is left" in said[0]


def test_a_command_that_may_not_be_signalled_goes_on() -> None:
    """As with sudo: what is sent to memfit cannot be passed on to another user's process."""
    code = """
import os, memfit
def refused(pid, number):
    raise PermissionError
os.kill = refused
command = ["sh", "-c", f"sleep 0.3; kill -USR1 {os.getpid()}; sleep 0.3; exit 7"]
raise SystemExit(memfit.run(command).exit_code)
"""
    done = subprocess.run(python(code), capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (7, "")


def test_a_command_that_just_ends_has_the_terminal_still() -> None:
    """What is there is gone or dead: nothing tells that it had not written half a line."""
    code = """
import os, subprocess, sys, time
from memfit.api.run import terminal_in_use
none = terminal_in_use()
dies = "import os, time; os.fork() or os._exit(0); time.sleep(60)"
child = subprocess.Popen([sys.executable, "-S", "-c", dies], stdin=-3, stdout=-3, stderr=-3)
time.sleep(1)
dead = terminal_in_use()
child.kill()
child.wait()
raise SystemExit(not (none and dead))
"""
    assert subprocess.run(python(code), timeout=60, check=False).returncode == 0
