"""Above its limit, a whole tree is asked to end and then ended, whoever reads what is said."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from memfit.measure.record.recording_reader import load
from memfit.model import EventKind
from tests.faults import (
    SECONDS,
    alive,
    broken_pipe,
    full_pipe,
    go_on,
    groups,
    groups_permitted,
    python,
    run,
    said_pid,
    until,
)

# Says its own PID and that of a worker that does not end when it is asked; grows after a line.
FAMILY = """
import os, signal, subprocess, sys, time
worker = subprocess.Popen([sys.executable, "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(100)"])
print(os.getpid(), flush=True), print(worker.pid, flush=True)
sys.stdin.readline()
kept = [bytearray(b"1") * (370 << 20)]
while True:
    kept.append(bytearray(b"1" * 2**20))
    time.sleep(0.02)
"""
# Keeps what it has when it is asked to end, which takes a while.
SAVES = """
import os, signal, sys, time
def save(number, frame):
    time.sleep(1)
    with open(sys.argv[1], "w") as file:
        file.write("saved")
    raise SystemExit(0)
signal.signal(signal.SIGTERM, save)
kept = bytearray(b"1") * (296 << 20)  # with Python itself, a little more than it may
while True:
    time.sleep(0.05)
"""


@pytest.mark.parametrize("stderr", [full_pipe, broken_pipe])
def test_nobody_has_to_read_what_the_guard_says(
    stderr: Callable[[], AbstractContextManager[int]], tmp_path: Path
) -> None:
    options = ("-o", str(tmp_path / "run.db"), "--grace", "1s")
    with (
        stderr() as end,
        run(python(FAMILY), "--limit", "400MiB", *options, stderr=end) as process,
    ):
        members = [said_pid(process), said_pid(process)]
        go_on(process)
        assert process.wait(SECONDS) in (128 + signal.SIGTERM, 128 + signal.SIGKILL)
        assert until(lambda: not any(map(alive, members)), 1)
    assert not groups(process.pid)
    trace = load(tmp_path / "run.db")
    assert {e.kind for e in trace.events} >= {EventKind.TERMINATED, EventKind.KILLED}
    assert trace.peak is not None and trace.peak.bytes < 440 << 20


def test_a_training_below_a_shell_is_asked_and_given_its_time(tmp_path: Path) -> None:
    saved = tmp_path / "checkpoint"
    (tmp_path / "train.py").write_text(SAVES)
    script = f"{python('')[0]} {tmp_path}/train.py {saved}; exit 5"
    with run(["bash", "-c", script], "--no-file", "--limit", "300MiB") as process:
        _, said = process.communicate(timeout=SECONDS)
    assert saved.read_text() == "saved"
    assert process.returncode == 128 + signal.SIGTERM  # bash's own
    assert "over the limit" in said


# A daemon in a session and an environment of its own, which holds memory and grows after a signal.
DAEMON = """
import os, sys, time
HOLDS = '''
import os, signal, time
kept, asked = [bytearray(b"1") * (90 << 20)], []
signal.signal(signal.SIGUSR1, lambda number, frame: asked.append(number))
os.write(1, f"{os.getpid()}\\\\n".encode())
while True:
    time.sleep(0.02)
    kept += [bytearray(b"1" * 2**20) for _ in asked]
'''
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve(sys.executable, [sys.executable, "-c", HOLDS], {})
    os._exit(0)
os.wait()
sys.stdin.readline()
raise SystemExit(7)
"""


def test_a_daemon_is_counted_and_told_of_when_it_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    with run(python(DAEMON), "-o", str(path), "--limit", "1GiB") as process:
        daemon = said_pid(process)
        assert until(lambda: path.exists() and _peak(path) > 90 * 2**20)
        # It holds the command's streams, as it would without memfit.
        go_on(process)
        assert process.wait(SECONDS) == 7
        assert alive(daemon)
        assert not groups(process.pid)
        os.kill(daemon, signal.SIGKILL)
        assert process.stderr is not None
        assert f"[{daemon}]" in process.stderr.read()
    assert EventKind.WARNING in {event.kind for event in load(path).events}


def test_a_daemon_that_goes_over_the_limit_is_ended_with_all_others() -> None:
    with run(python(DAEMON), "--no-file", "--limit", "140MiB") as process:
        daemon = said_pid(process)
        os.kill(daemon, signal.SIGUSR1)
        assert process.wait(SECONDS) == 128 + signal.SIGTERM
        assert not alive(daemon)
        assert process.stderr is not None and "over the limit" in process.stderr.read()


@pytest.mark.skipif(not groups_permitted(), reason="the kernel's memory group is not permitted")
def test_what_is_left_of_a_command_that_the_kernel_has_ended_is_ended_too() -> None:
    """memfit is held still, so that only the kernel is left to keep the limit."""
    with run(python(FAMILY), "--no-file", "--limit", "100MiB") as process:
        main, worker = said_pid(process), said_pid(process)
        process.send_signal(signal.SIGSTOP)
        go_on(process)
        assert until(lambda: not alive(main))
        assert alive(worker)
        process.send_signal(signal.SIGCONT)
        assert process.wait(SECONDS) == 128 + signal.SIGKILL
        assert not alive(worker) and not groups(process.pid)
        assert process.stderr is not None
        assert "killed by the kernel for want of memory" in process.stderr.read()


# A worker takes more than it may while memfit is held still; whoever started it ends well.
OVERSIZED = """
import os, subprocess, sys
print(os.getpid(), flush=True)
sys.stdin.readline()
worker = subprocess.run([sys.executable, "-c", "kept = bytearray(b'1' * (400 << 20))"])
print(worker.returncode, flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(not groups_permitted(), reason="the kernel's memory group is not permitted")
def test_an_oom_kill_in_the_tree_is_told_whatever_the_exit_code() -> None:
    with run(python(OVERSIZED), "--no-file", "--limit", "150MiB") as process:
        said_pid(process)
        process.send_signal(signal.SIGSTOP)
        go_on(process)
        assert said_pid(process) == -signal.SIGKILL
        process.send_signal(signal.SIGCONT)
        _, said = process.communicate("\n", timeout=SECONDS)
    assert process.returncode == 0
    assert "a process of it was killed by the kernel for want of memory" in said


def _peak(path: Path) -> int:
    found = load(path).peak
    return found.bytes if found else 0


# Workers read memory that they share: each of them has all of it resident, and together it is once.
SHARED = """
import mmap, os, sys, time
shared = mmap.mmap(-1, 60 << 20)
for i in range(0, len(shared), 4096):
    shared[i] = 1
time.sleep(1)
for _ in range(3):
    if os.fork() == 0:
        sum(shared[i] for i in range(0, len(shared), 4096))
        time.sleep(1)
        os._exit(0)
time.sleep(1.5)
raise SystemExit(7)
"""


def test_memory_that_workers_share_is_no_reason_to_end_them() -> None:
    with run(python(SHARED), "--no-file", "--limit", "110MiB") as process:
        _, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 7 and "asking it to end" not in said, said


# Says how often it was told to go on: nobody is, unless it was stopped.
NOTES = """
import signal
noted = []
signal.signal(signal.SIGCONT, lambda number, frame: noted.append(number))
"""


def test_a_run_within_its_limit_is_never_held() -> None:
    code = NOTES + SHARED.replace("raise", "print(noted, flush=True)\nraise")
    with run(python(code), "--no-file", "--limit", "110MiB") as process:
        out, said = process.communicate(timeout=SECONDS)
    assert out == "[]\n" and process.returncode == 7, said
