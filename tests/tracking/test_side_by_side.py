"""What processes hold together is read, and they end with their workers and with their parent."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from memfit.tracking.side_by_side import (
    Held,
    end_with_workers,
    held,
    memory_of,
    together,
    tree,
)

MIB = 2**20
NOBODY = 2**22 + 1  # more than the kernel gives out
SHELL = ["sh", "-c", "sleep 100 & sleep 100 & wait"]


def until(done: Callable[[], bool]) -> bool:
    end = time.monotonic() + 20
    while not done() and time.monotonic() < end:
        time.sleep(0.01)
    return done()


def gone(pids: list[int]) -> bool:
    return not held(pids).total


def test_memory_of_processes_is_read() -> None:
    own = held([os.getpid()])
    assert own.private > MIB and own.files > MIB and own.total == own.private + own.files
    assert held([]) == Held() == held([NOBODY])
    block = bytearray(os.urandom(64 * MIB))
    assert held([os.getpid()]).private >= own.private + 60 * MIB
    assert memory_of(os.getpid()).own >= len(block)


def test_files_that_all_map_count_once() -> None:
    command = [sys.executable, "-c", "import json, email.message; input()"]
    started = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(2)]
    try:
        pids = [process.pid for process in started]
        assert until(lambda: all(memory_of(pid).private > 3 * MIB for pid in pids))
        each = [memory_of(pid) for pid in pids]
        both = together(each)
        assert both.private == sum(one.private for one in each)
        assert both.files == max(one.files for one in each) > MIB
    finally:
        for process in started:
            process.communicate(b"\n")


def test_a_process_ends_with_all_below_it_and_nothing_else_does() -> None:
    process, other = subprocess.Popen(SHELL), subprocess.Popen(SHELL)
    try:
        assert until(lambda: len(tree(process.pid)) == len(tree(other.pid)) == 3)
        pids, others = tree(process.pid), tree(other.pid)
        end_with_workers(process)
        assert process.returncode == -9
        assert until(lambda: gone(pids))
        assert all(memory_of(pid).total for pid in others)
    finally:
        end_with_workers(other)


def test_a_process_that_has_ended_is_not_ended_again() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    process.pid = os.getpid()  # as if its number had been given out again, here to this very test
    end_with_workers(process)
    assert process.returncode == 0


def test_a_process_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    below = (
        "import sys, time\n"
        "from memfit.tracking.side_by_side import end_with_parent\n"
        "end_with_parent(int(sys.argv[1]))\n"
        "open(sys.argv[2], 'w').close()\n"
        "time.sleep(100)\n"
    )
    ready = tmp_path / "ready"
    above = (
        "import os, subprocess, sys\n"
        f"subprocess.run([sys.executable, '-c', {below!r}, str(os.getpid()), {str(ready)!r}])\n"
    )
    process = subprocess.Popen([sys.executable, "-c", above])
    try:
        assert until(ready.exists)
        pids = tree(process.pid)
        assert len(pids) == 2
    finally:
        process.kill()
        process.wait()
    assert until(lambda: gone(pids))
