"""Readers of /proc against real child processes of known size."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from memfit.measure.kernel import proc

MIB = 2**20


@contextmanager
def child(program: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A Python child that says one line when it is ready and waits for its input to end."""
    process = subprocess.Popen(
        [sys.executable, "-c", program + "\nprint('ready', flush=True)\ninput()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **environment},
    )
    assert process.stdout is not None and process.stdin is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stdin.close()


def test_touched_memory_is_seen_and_reserved_memory_is_not() -> None:
    with child("pass") as bare, child("held = bytearray(b'x' * (64 << 20))") as touched:
        difference = proc.tree_bytes(touched.pid) - proc.tree_bytes(bare.pid)
        assert abs(difference - 64 * MIB) < 2 * MIB
    with child("import mmap; held = mmap.mmap(-1, 1 << 34, flags=2 | 32 | 0x4000)") as reserved:
        assert proc.tree_bytes(reserved.pid) < 40 * MIB


def test_pages_shared_by_a_fork_count_once() -> None:
    program = (
        "import os, sys, signal\n"
        "held = bytearray(b'x' * (64 << 20))\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        signal.pause()\n"
        "import atexit, time; time.sleep(0.3)"
    )
    with child(program) as process:
        below = proc.descendants(process.pid)
        assert len(below) == 3
        total = proc.tree_bytes(process.pid)
        single = proc.rollup(process.pid)
        assert single is not None
        assert 64 * MIB < total < 64 * MIB + 40 * MIB
        assert sum(r.rss for p in below if (r := proc.rollup(p))) > 3 * 64 * MIB
        for pid in below:
            os.kill(pid, 9)


def test_a_process_that_is_gone_reads_as_none() -> None:
    with child("pass") as process:
        pid = process.pid
    assert proc.rollup(pid) is None
    assert proc.descendants(pid) == []
    assert proc.tree_bytes(pid) == 0


def test_marked_processes_are_found_by_their_environment() -> None:
    with child("pass", MEMFIT_TEST_MARK="a1b2") as process:
        assert proc.marked("MEMFIT_TEST_MARK", "a1b2") == [process.pid]
    assert proc.marked("MEMFIT_TEST_MARK", "a1b2") == []


def test_the_peak_meter_sees_a_spike_that_is_over() -> None:
    meter = proc.PeakMeter()
    meter.start()
    before = meter.now()
    spike = b"x" * (96 * MIB)
    del spike
    assert meter.exact
    assert meter.now() - before < 16 * MIB
    assert 90 * MIB < meter.peak() - before < 110 * MIB
    meter.start()
    assert meter.peak() - before < 16 * MIB
