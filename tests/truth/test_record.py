"""Recorded runs beside what the kernel says, and a guard that holds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import memfit
from memfit.measure.kernel import proc
from memfit.measure.record.recording_reader import load
from memfit.model import EventKind

pytestmark = [pytest.mark.truth, pytest.mark.timeout(120)]

MIB = 2**20
# Rises to 300 MiB, stays, falls; says what the kernel counted at the most.
HILL = """
import resource, time
block = bytearray(300 * 2**20)
for i in range(0, len(block), 4096):
    block[i] = 1
time.sleep(1.5)
del block
time.sleep(0.5)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""
# As fast as memory can be had, in huge pages where there are some.
FAST = """
import mmap
kept = []
while True:
    block = mmap.mmap(-1, 32 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    block.madvise(mmap.MADV_HUGEPAGE)
    block[:] = b"\\1" * len(block)
    kept.append(block)
"""
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
kept = []
while True:
    kept.append(bytearray(b"1" * 2**20))
    time.sleep(0.02)
"""

# A rollout that never ends, as fast as 5 MiB a second.
ROLLOUT = """
import time

class Agent:
    def __init__(self):
        self.trajectory = []

def explore(agent):
    while True:
        agent.trajectory += [bytes(5000) + str(i).encode() for i in range(100)]
        time.sleep(0.1)

explore(Agent())
"""


def python(code: str, *before: str) -> list[str]:
    return [*before, sys.executable, "-c", code]


def run(path: Path, code: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = python(code, sys.executable, "-m", "memfit", "run", "-o", str(path), *options, "--")
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def test_the_recorded_peak_is_the_kernels(tmp_path: Path) -> None:
    done = run(tmp_path / "hill.db", HILL)
    assert done.returncode == 0, done.stderr
    true = int(done.stdout)
    trace = load(tmp_path / "hill.db")
    assert trace.peak is not None
    # PSS counts shared libraries by part, so a few MiB less than the kernel's resident peak.
    assert true - 12 * MIB <= trace.peak.bytes <= true + MIB
    assert trace.readings[-1].bytes < 100 * MIB
    assert trace.exit_code == 0
    assert trace.peak_ledger is not None
    rows = {c.name: trace.peak_ledger.bytes_of(c) for c in trace.peak_ledger.components}
    assert max(rows.values()) >= 250 * MIB
    assert trace.events[0].kind is EventKind.START
    assert trace.events[-1].kind is EventKind.END


def test_the_guard_stops_what_allocates_as_fast_as_it_can(tmp_path: Path) -> None:
    limit = 1024 * MIB
    done = run(tmp_path / "fast.db", FAST, "--limit", "1GiB")
    trace = load(tmp_path / "fast.db")
    assert done.returncode in (128 + signal.SIGTERM, 128 + signal.SIGKILL)
    assert trace.peak is not None
    assert limit * 0.9 <= trace.peak.bytes <= limit * 1.1
    kinds = {e.kind for e in trace.events}
    assert EventKind.TERMINATED in kinds and EventKind.KILLED in kinds
    assert "over the limit" in done.stderr


def test_what_does_not_end_when_asked_is_made_to(tmp_path: Path) -> None:
    done = run(tmp_path / "stubborn.db", STUBBORN, "--limit", "64MiB", "--grace", "1s")
    assert done.returncode == 128 + signal.SIGKILL
    trace = load(tmp_path / "stubborn.db")
    assert trace.peak is not None and trace.peak.bytes <= 64 * MIB * 1.1


@pytest.mark.slow
def test_what_grew_is_told_when_a_run_is_ended(tmp_path: Path) -> None:
    done = run(tmp_path / "run.db", ROLLOUT, "--limit", "220MiB")
    wanted = "explore().agent.trajectory grew most: by "
    assert wanted in done.stderr.replace("\n", " "), done.stderr
    ended = [e for e in load(tmp_path / "run.db").events if e.kind is EventKind.KILLED]
    assert "over the limit" in ended[0].text and wanted in ended[0].text


def test_without_a_place_nothing_is_left_behind(tmp_path: Path) -> None:
    trace = memfit.run(python("import sys; sys.exit(3)"))
    assert trace.exit_code == 3
    assert not list(tmp_path.iterdir())


def test_a_recorder_that_is_held_still_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    recorder = _recording(path, "import time\nfor _ in range(60):\n    time.sleep(.05)", readings=1)
    for number in (signal.SIGSTOP, signal.SIGCONT) * 2:
        recorder.send_signal(number)
        time.sleep(0.5)
    assert recorder.wait(60) == 0
    assert load(path).exit_code == 0


@pytest.mark.parametrize("who", ["recorder", "target", "both"])
def test_a_kill_loses_nothing_that_was_recorded(who: str, tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    code = "import time\nk = []\nwhile True:\n    k.append(bytearray(2**20))\n    time.sleep(.01)"
    recorder = _recording(path, code, readings=4)
    _, target = proc.descendants(recorder.pid)
    before = _count(path)
    chosen = {"recorder": [recorder.pid], "target": [target]}.get(who, [recorder.pid, target])
    for pid in chosen:
        os.kill(pid, signal.SIGKILL)
    recorder.wait(30)
    trace = load(path)
    assert len(trace.readings) >= before >= 4
    if who == "recorder":  # the run has no limit, and goes on
        os.kill(target, signal.SIGKILL)
    assert _ends(target)


def _recording(path: Path, code: str, *, readings: int) -> subprocess.Popen[bytes]:
    """A recorder of some code that has taken so many readings."""
    command = python(code, sys.executable, "-m", "memfit", "run", "-q", "-o", str(path), "--")
    recorder = subprocess.Popen(command)
    until = time.monotonic() + 60
    while time.monotonic() < until and not (path.exists() and _count(path) >= readings):
        time.sleep(0.05)
    return recorder


def _count(path: Path) -> int:
    try:
        return len(load(path).readings)
    except memfit.MemfitError:
        return 0


def _ends(pid: int) -> bool:
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state in "ZX":
            return True
        time.sleep(0.05)
    return False
