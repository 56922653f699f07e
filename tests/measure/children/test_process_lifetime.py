"""A tree is held still so that none of it notices, and nobody else's stop is undone."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from memfit.measure.children.process_lifetime import held_still
from memfit.measure.kernel import proc
from tests.faults import SECONDS, python, state, until

# A launcher that takes note of what becomes of its workers, which compute, as shells do with jobs.
# The last of them is stopped by the launcher itself.
LAUNCHER = """
import os, signal, sys, threading, time
def computes():
    while True:
        sum(range(1000))
workers = []
for _ in range(3):
    workers.append(os.fork())
    if workers[-1] == 0:
        threading.Thread(target=computes, daemon=True).start()
        time.sleep(100)
        os._exit(0)
os.kill(workers[-1], signal.SIGSTOP)
os.waitpid(workers[-1], os.WUNTRACED)
print(*workers, flush=True)
left = set(workers)
while left:
    pid, status = os.waitpid(-1, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        print("stopped", flush=True)
    else:
        left.discard(pid)
print("ended", flush=True)
"""


@pytest.fixture
def launcher() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(python(LAUNCHER), stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_who_waits_for_a_worker_never_sees_it_held(launcher: subprocess.Popen[str]) -> None:
    assert launcher.stdout is not None
    *workers, paused = map(int, launcher.stdout.readline().split())
    tree = proc.Tree(main=launcher.pid)
    for _ in range(40):
        with held_still(tree) as members:
            assert set(members) == {launcher.pid, *workers, paused}
            assert until(lambda: all(state(pid) == "T" for pid in members))
        time.sleep(0.005)
        assert state(paused) == "T", "whoever stopped it is the one to have it go on"
    assert until(lambda: all(state(pid) in ("R", "S") for pid in (launcher.pid, *workers)))
    for pid in (*workers, paused):
        os.kill(pid, signal.SIGKILL)
    said, _ = launcher.communicate(timeout=SECONDS)
    assert said == "ended\n"


def test_a_shell_with_job_control_keeps_its_job() -> None:
    code = "print('ready', flush=True); input(); raise SystemExit(7)"
    words = ["bash", "-mc", '"$@"; echo "code $?"', "bash", *python(code)]
    shell, terminal = pty.fork()
    if shell == 0:
        os.execvp(words[0], words)
    with open(terminal, "r+b", buffering=0) as screen:
        assert screen.readline() == b"ready\r\n"
        for _ in range(40):
            with held_still(proc.Tree(main=shell)) as members:
                assert len(members) == 2
            time.sleep(0.005)
        screen.write(b"\n")
        said = b""
        with suppress(OSError):  # what a terminal says once nobody has it open
            while more := screen.read(1000):
                said += more
    os.waitpid(shell, 0)
    assert b"code 7" in said and b"Stopped" not in said


def test_all_go_on_whatever_fails_meanwhile(launcher: subprocess.Popen[str]) -> None:
    assert launcher.stdout is not None
    *workers, paused = map(int, launcher.stdout.readline().split())
    with pytest.raises(ZeroDivisionError), held_still(proc.Tree(main=launcher.pid)):
        raise ZeroDivisionError
    assert until(lambda: all(state(pid) in ("R", "S") for pid in (launcher.pid, *workers)))
    assert state(paused) == "T"
    for pid in (*workers, paused):
        os.kill(pid, signal.SIGKILL)
