"""A thread of memfit's takes no signal that is meant for the program around it."""

from __future__ import annotations

import signal
import threading

from memfit.measure.kernel.quiet_thread import quiet_thread


def blocked(thread: int) -> int:
    """The signals that a thread blocks, as the kernel has them: one bit for each."""
    with open(f"/proc/self/task/{thread}/status") as file:
        (line,) = (line for line in file if line.startswith("SigBlk:"))
    return int(line.split()[1], 16)


def test_a_quiet_thread_blocks_all_signals_and_its_maker_none_more() -> None:
    done = threading.Event()
    own = threading.get_native_id()
    before = blocked(own)
    thread = quiet_thread(done.wait, "memfit-test")
    try:
        assert thread.native_id is not None
        bits = blocked(thread.native_id)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            assert bits & 1 << (number - 1)
        assert blocked(own) == before
    finally:
        done.set()
        thread.join()
    assert thread.daemon
