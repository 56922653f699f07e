"""Kills for want of memory are noticed, and nobody is blamed for another's."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memfit.measure.kernel.cgroup import Group, memory_group
from memfit.measure.kernel.endings import Ending, Endings
from memfit.measure.record import oom_kills
from memfit.measure.record.oom_kills import OomKills
from tests.faults import SECONDS, go_on, groups_permitted, python, run, said_pid, until

# A worker takes more than the group that all of this is in may have; its parent ends well.
PROGRAM = """
import subprocess, sys, time
worker = subprocess.run([sys.executable, "-c", "kept = bytearray(b'1' * (400 << 20))"])
time.sleep(1)
raise SystemExit(worker.returncode != -9)
"""


@pytest.mark.skipif(not groups_permitted(), reason="the kernel's memory group is not permitted")
def test_a_worker_that_a_container_has_no_room_for_is_told_of() -> None:
    words = [sys.executable, "-m", "memfit", "run", "--no-file", "--", *python(PROGRAM)]
    with memory_group(200 << 20) as group:
        assert group is not None
        procs = group.path / "cgroup.procs"
        done = subprocess.run(
            words,
            preexec_fn=lambda: procs.write_text(str(os.getpid())) and None,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    told = r"a process of it (was|may have been) killed by the kernel for want of memory"
    assert len(re.findall(told, done.stderr)) == 2


@pytest.mark.skipif(not groups_permitted(), reason="the kernel's memory group is not permitted")
def test_a_kill_in_the_runs_group_before_anybody_looked_is_told_of() -> None:
    """Whoever guards a run may have been held still while it began and ended."""
    with memory_group(50 << 20) as group:
        assert group is not None
        procs = group.path / "cgroup.procs"
        subprocess.run(
            python("kept = bytearray(b'1' * (200 << 20))"),
            preexec_fn=lambda: procs.write_text(str(os.getpid())) and None,
            timeout=SECONDS,
            check=False,
        )
        kills = OomKills(group)
        assert kills.found((), killed=True) == "killed by the kernel for want of memory"
        assert kills.found(()) == "", "once is enough"


class Machine:
    """A machine that counts kills as it is told to, and a run of two processes on it."""

    def __init__(self, main: subprocess.Popen[bytes], worker: subprocess.Popen[bytes]) -> None:
        self.main, self.worker = main, worker
        self.count, self.around = 3, 1
        self.kills: OomKills

    def found(self, *, killed: bool | None = None) -> str:
        return self.kills.found([self.main.pid, self.worker.pid], killed=killed)

    def worker_ends(self, number: signal.Signals) -> None:
        """It ends by a signal, and whoever started it takes note."""
        self.worker.send_signal(number)
        self.worker.wait()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    with subprocess.Popen(["sleep", "100"]) as main, subprocess.Popen(["sleep", "100"]) as worker:
        made = Machine(main, worker)
        monkeypatch.setattr(OomKills, "_count", lambda kills: made.count)
        monkeypatch.setattr(OomKills, "_count_around", lambda kills: made.around)
        made.kills = OomKills(None, main.pid)
        assert not made.found()
        yield made
        made.kills.found((), killed=False)
        main.kill()
        worker.kill()


def _kernel_tells() -> bool:
    with subprocess.Popen(["sleep", "100"]) as process:
        endings = Endings()
        endings.follow([process.pid])
        process.kill()
        process.wait()
        return endings.of(process.pid) is Ending.KILLED


tells = pytest.mark.skipif(not _kernel_tells(), reason="the kernel does not tell how others end")


@tells
def test_a_worker_that_ended_otherwise_is_never_blamed(machine: Machine) -> None:
    machine.count += 1
    machine.worker_ends(signal.SIGTERM)
    assert not machine.found()
    assert not machine.found(killed=False)


@tells
def test_a_worker_that_was_killed_when_the_count_rose_is_told_of_once(machine: Machine) -> None:
    machine.count += 1
    machine.worker_ends(signal.SIGKILL)
    assert machine.found() == "a process of it was killed by the kernel for want of memory"
    assert not machine.found(killed=False)


def test_a_kill_that_the_kernel_has_not_counted_is_none_of_its_own(machine: Machine) -> None:
    machine.worker_ends(signal.SIGKILL)
    assert not machine.found() and not machine.found(killed=True)


@pytest.mark.parametrize("group", ["has counted", "has not counted", "none"])
def test_where_nobody_tells_how_a_worker_ended_it_may_have_been(
    machine: Machine, group: str
) -> None:
    machine.kills._around = [] if group == "none" else [Group(Path("around"))]
    machine.kills._endings.close()
    machine.count += 1
    machine.around += group == "has counted"
    machine.worker_ends(signal.SIGTERM)
    told = "a process of it may have been killed by the kernel for want of memory"
    assert machine.found() == (told if group != "has not counted" else "")
    assert not machine.found()


def test_one_too_short_to_be_seen_may_have_been_where_the_group_around_counts(
    machine: Machine,
) -> None:
    machine.count += 1
    machine.around += 1
    assert not machine.found(), "it may yet be seen"
    told = "a process of it may have been killed by the kernel for want of memory"
    assert machine.found(killed=False) == told


@pytest.mark.parametrize("killed", [True, False])
def test_the_command_is_judged_by_how_it_ended(machine: Machine, killed: bool) -> None:
    machine.count += 1
    machine.main.kill()
    machine.main.wait()
    assert not machine.found(), "that is known at the end"
    told = machine.found(killed=killed)
    assert told == ("killed by the kernel for want of memory" if killed else "")


def test_a_command_that_is_killed_long_after_another_is_not_taken_for_it(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oom_kills, "_DYING_SECONDS", 0.0)
    machine.count += 1
    assert not machine.found()
    assert not machine.found(killed=True)


# Starts workers that end well, one after the other, until a line comes; the last ends with it.
ENDING_WELL = """
import os, subprocess, sys, time
print(os.getpid(), flush=True)
os.set_blocking(0, False)
while not sys.stdin.buffer.read():
    subprocess.run(["sleep", "0.4"])
raise SystemExit(7)
"""


@tells
@pytest.mark.skipif(not groups_permitted(), reason="the kernel's memory group is not permitted")
def test_a_run_is_not_blamed_for_a_kill_somewhere_else_on_the_machine() -> None:
    with run(python(ENDING_WELL), "--no-file") as process, memory_group(50 << 20) as group:
        assert group is not None
        procs = group.path / "cgroup.procs"
        said_pid(process)
        subprocess.run(
            python("import time; time.sleep(1); kept = bytearray(b'1' * (200 << 20))"),
            preexec_fn=lambda: procs.write_text(str(os.getpid())) and None,
            timeout=SECONDS,
            check=False,
        )
        assert until(lambda: group.killed() == 1)
        go_on(process)
        _, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 7
    assert "for want of memory" not in said
