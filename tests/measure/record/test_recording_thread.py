"""A recording that cannot go on ends; the command, its exit code and its guard do not."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest

from memfit.measure.record.recording_reader import load
from tests.faults import (
    GROWS,
    MIB,
    SECONDS,
    WAITS,
    alive,
    go_on,
    python,
    readings,
    run,
    said_pid,
    until,
)

ENDED = "recording into"
Fault = Callable[[subprocess.Popen[str], Path], object]


def full(process: subprocess.Popen[str], path: Path) -> None:
    """Not one byte more for memfit, as on a disk without room; the command is not touched."""
    hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, hard))


def removed(process: subprocess.Popen[str], path: Path) -> None:
    shutil.rmtree(path.parent)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None, timeout=SECONDS)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


@contextmanager
def recorded(path: Path, code: str, *options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A command that is being recorded, and waits; its PID."""
    path.parent.mkdir()
    with run(python(code), "-o", str(path), *options) as process:
        training = said_pid(process)
        assert until(lambda: readings(path) >= 2)
        yield process, training


@pytest.mark.parametrize("fault", [full, removed])
def test_a_fault_of_the_disk_does_not_reach_the_command(fault: Fault, tmp_path: Path) -> None:
    path = tmp_path / "there" / "run.db"
    with recorded(path, WAITS) as (process, _):
        fault(process, path)
        time.sleep(1)
        assert process.poll() is None
        _, said = process.communicate("\n", timeout=SECONDS)
    assert process.returncode == 7
    assert said.count(ENDED) + said.count("cannot be read any more") == 1, said
    assert "Traceback" not in said
    assert "exit code 7" in said and "peak" in said
    assert ("only until recording ended" in " ".join(said.split())) == path.exists()


def test_a_refused_recording_is_not_in_the_way_of_the_next(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    words = [sys.executable, "-m", "memfit", "run", "-q", "-o", str(path), "--", "true"]
    limit = resource.RLIMIT_FSIZE  # as on a disk without room
    hard = resource.getrlimit(limit)[1]
    for room, code, left in ((0, 2, []), (hard, 0, [path])):
        done = subprocess.run(
            words,
            preexec_fn=partial(resource.setrlimit, limit, (room, hard)),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert list(tmp_path.iterdir()) == left


@pytest.mark.slow
def test_a_locked_recording_is_given_up_and_said_once(tmp_path: Path) -> None:
    path = tmp_path / "there" / "run.db"
    with recorded(path, WAITS) as (process, _):
        assert process.stderr is not None
        with locked(path):
            assert ENDED in process.stderr.readline()
            assert process.poll() is None
        _, said = process.communicate("\n", timeout=SECONDS)
    assert process.returncode == 7
    assert ENDED not in said and "exit code 7" in said
    assert readings(path) >= 2  # what was kept until then can be read


def test_the_guard_goes_on_without_a_recording(tmp_path: Path) -> None:
    path = tmp_path / "there" / "run.db"
    with recorded(path, GROWS, "--limit", "400MiB") as (process, _):
        full(process, path)
        _, said = process.communicate("\n", timeout=SECONDS)
    assert process.returncode == 128 + signal.SIGTERM
    assert "over the limit: 40" in said and "exit code 143" in said


def test_the_guard_does_not_wait_for_a_lock_and_a_short_one_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "there" / "run.db"
    with recorded(path, GROWS, "--limit", "400MiB") as (process, training):
        with locked(path):
            go_on(process)
            assert until(lambda: not alive(training), 4)
        _, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 128 + signal.SIGTERM and ENDED not in said
    trace = load(path)
    assert trace.exit_code == process.returncode and trace.peak is not None
    assert 400 * MIB < trace.peak.bytes < 440 * MIB


def test_a_terminal_that_is_gone_takes_nothing_with_it(tmp_path: Path) -> None:
    path = tmp_path / "there" / "run.db"
    path.parent.mkdir()
    master, terminal = os.openpty()
    with (
        open(terminal, "wb") as end,
        run(
            python(WAITS),
            *("-o", str(path), "--limit", "1GiB"),
            stderr=end,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
        ) as process,
    ):
        said_pid(process)
        assert until(lambda: readings(path) >= 2)
        os.close(master)
        before = readings(path)
        assert until(lambda: readings(path) > before + 2)
        go_on(process)
        assert process.wait(SECONDS) == 7
    assert load(path).exit_code == 7


FORKS = """
import os, sys
from pathlib import Path
from memfit.measure.record.recording_thread import RecordingThread
recording = RecordingThread(Path(sys.argv[1]), print)
recording.tell(lambda r: r.about(own=1))
if (pid := os.fork()) == 0:
    recording.tell(lambda r: r.about(fork=1))
    recording.close()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
recording.close()
"""


def test_a_fork_of_the_training_says_nothing_and_waits_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS, str(path)],
        timeout=SECONDS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT name FROM about").fetchall() == [("own",)]
