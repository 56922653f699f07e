"""What `memfit run` tells of programs that leak, that fill, and that do neither."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memfit.api.compare import outlook
from memfit.errors import UsageError
from memfit.measure.record.recording_reader import load
from memfit.model import EventKind, Growth, Trace
from memfit.units import MIB, format_bytes

pytestmark = [pytest.mark.truth, pytest.mark.timeout(180)]

# Keeps the infos of every step as Python objects, beside threads that never rest.
BUSY = """
import threading, time
def work():
    while True:
        sum(range(1000))
for _ in range(6):
    threading.Thread(target=work, daemon=True).start()
kept, begin, given = [], time.monotonic(), 0
while True:
    while given < (time.monotonic() - begin) * 8000:
        kept.append({"step": given, "reward": float(given), "state": [given] * 40})
        given += 1
    time.sleep(0.02)
"""
# Four workers, of which the third keeps what it makes.
WORKERS = """
import multiprocessing, time
def worker(number):
    own, kept = bytearray(b"1") * (20 << 20), []
    for _ in range(800):
        if number == 2:
            kept.append(bytearray(b"1") * (1 << 17))
        time.sleep(0.05)
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=worker, args=(i,)) for i in range(4)]
    for each in workers:
        each.start()
    print(workers[2].pid, flush=True)
    for each in workers:
        each.join()
"""
# Grows by 40 MiB a second.
FAST = """
import time
kept = []
while True:
    kept.append(bytearray(b"1") * (4 << 20))
    time.sleep(0.1)
"""
# An environment that is made, stepped and closed, in four seconds.
CLEAN = """
import time
env = []
for i in range(40):
    env.append(bytearray(b"1") * (2 << 20))
    time.sleep(0.02)
time.sleep(3)
"""


def recorded(path: Path, code: str, *options: str) -> tuple[Trace, str, str]:
    command = [sys.executable, "-m", "memfit", "run", "-o", str(path), *options, "--"]
    done = subprocess.run(
        [*command, sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    return load(path), done.stdout, done.stderr


@pytest.mark.slow
def test_a_busy_run_that_leaks_objects_is_warned_of_until_it_is_killed(tmp_path: Path) -> None:
    trace, _, said = recorded(tmp_path / "busy.db", BUSY, "--limit", "350MiB", "--grace", "1s")
    killed = next(e for e in trace.events if e.kind is EventKind.TERMINATED)
    warnings = [e for e in trace.events if e.kind is EventKind.WARNING and "90 of 100" in e.text]
    assert len(warnings) >= 2 and warnings[0].seconds >= 15
    for warning in warnings:
        low, high = map(int, re.findall(r"\((\d+) s to (\d+) s", warning.text)[0])
        assert warning.seconds + low - 2 <= killed.seconds <= warning.seconds + high + 2
    assert outlook(trace).growth is Growth.LEAKING
    found = outlook(trace)
    assert re.search(r"^verdict: over its limit .*leaking", said, re.MULTILINE)
    told = f"leaking by {format_bytes(round(found.bytes_per_second))}/s since {found.since:.0f} s"
    for command in ("watch", "explain"):
        done = subprocess.run(
            [sys.executable, "-m", "memfit", command, str(tmp_path / "busy.db")],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert told in " ".join(done.stdout.split()) and told in " ".join(said.split())
        assert "ended by memfit, over the limit" in done.stdout


@pytest.mark.slow
def test_a_watched_run_ends_with_what_it_said_itself(tmp_path: Path) -> None:
    """By PID, the end of a run that its limit ended is told as in its recording."""
    place = tmp_path / "fast.db"
    command = [sys.executable, "-m", "memfit", "run", "-q", "-o", str(place), "--limit", "500MiB"]
    run = subprocess.Popen([*command, "--", sys.executable, "-c", FAST])
    try:
        while not (place.exists() and (trace := _begun(place))):
            time.sleep(0.1)
        seen = subprocess.run(
            [sys.executable, "-m", "memfit", "watch", str(trace.pid), "--every", "200ms"],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
    finally:
        run.terminate()
        run.wait(60)
    last = " ".join(seen.stdout.split())
    assert "ended by memfit, over the limit" in last
    assert "limit 500 MiB (--limit); ended after" in last


def _begun(place: Path) -> Trace | None:
    """A recording that has a first reading."""
    try:
        trace = load(place)
    except UsageError:  # it is just being made
        return None
    return trace if trace.readings else None


@pytest.mark.slow
def test_the_worker_of_four_that_leaks_is_named(tmp_path: Path) -> None:
    trace, out, said = recorded(tmp_path / "workers.db", WORKERS)
    found = outlook(trace)
    assert found.growth is Growth.LEAKING
    assert len(found.members) == 1 and found.members[0].startswith(f"{out.strip()} (")
    assert found.bytes_per_second == pytest.approx(2.5 * MIB, rel=0.25)
    assert any(out.strip() in line for line in said.splitlines() if "warning: growing" in line)


def test_a_clean_run_of_four_seconds_is_no_leak(tmp_path: Path) -> None:
    trace, _, said = recorded(tmp_path / "clean.db", CLEAN)
    assert outlook(trace).growth is Growth.UNKNOWN
    assert "no growth can be told yet" in said and "warning" not in said
