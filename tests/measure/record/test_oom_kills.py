"""Kills for want of memory are noticed without a memory group of memfit's own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from memfit.measure.kernel.cgroup import memory_group
from memfit.measure.record.oom_kills import OomKills
from tests.faults import SECONDS, groups_permitted, python

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
    assert done.stderr.count("a process of it was killed by the kernel for want of memory") == 2


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
