"""memfit is killed while it holds a run still that is over its limit: nothing stays stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from memfit.measure.kernel import proc
from tests import faults

SECONDS = 90.0
GROWS = """
import os, sys, time
kept = []
pid = os.fork()
with open(sys.argv[1], "a") as file:
    file.write(f"{os.getpid()}\\n")
if pid == 0:
    time.sleep(600)  # a worker, which is held still too
while True:
    kept.append(bytearray(os.urandom(1)) * 2**20)
    time.sleep(0.005)
"""


@contextmanager
def over_its_limit(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], list[int]]]:
    """A run that is held still, and the processes that are."""
    pids = folder / "pids"
    words = [sys.executable, "-m", "memfit", "run", "-q", "-o", str(folder / "run.db")]
    words += ["--limit", "200MiB", "--", sys.executable, "-c", GROWS, str(pids)]
    process = subprocess.Popen(words)
    members: list[int] = []
    try:
        assert faults.until(lambda: proc.text(pids).count("\n") == 2, SECONDS)
        members = [int(line) for line in proc.text(pids).splitlines()]
        assert faults.until(lambda: any(map(stopped, members)), SECONDS), "it is never held still"
        yield process, members
    finally:
        for pid in [process.pid, *members]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()


def stopped(pid: int) -> bool:
    return proc.state_and_parent(pid)[0] == "T"


@pytest.mark.parametrize("killed", ["memfit", "memfit and its keeper"])
def test_nothing_stays_stopped(killed: str, tmp_path: Path) -> None:
    with over_its_limit(tmp_path) as (process, members):
        keeper = proc.children(process.pid)[0]
        process.kill()
        if killed != "memfit":
            os.kill(keeper, signal.SIGKILL)
        time.sleep(0.1)
        assert faults.until(lambda: not any(map(stopped, members)), SECONDS / 3)
