"""`memfit.run` from Python: from any thread, whatever the caller's own functions do."""

from __future__ import annotations

import signal
import threading

import memfit
from memfit.measure.kernel import proc
from memfit.model import EventKind, Forecast, Reading, Trace
from tests.faults import python

GROWS = """
import time
kept = [bytearray(b"1") * (370 << 20)]
while True:
    kept.append(bytearray(b"1" * 2**20))
    time.sleep(0.02)
"""


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
