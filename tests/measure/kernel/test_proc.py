"""Readers of /proc against real child processes of known size."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memfit.measure.kernel import proc
from memfit.measure.kernel.proc import Rollup

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
        difference = proc.tree_memory(touched.pid).alone - proc.tree_memory(bare.pid).alone
        assert abs(difference - 64 * MIB) < 2 * MIB
    with child("import mmap; held = mmap.mmap(-1, 1 << 34, flags=2 | 32 | 0x4000)") as reserved:
        assert proc.tree_memory(reserved.pid).alone < 40 * MIB


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
        total = proc.tree_memory(process.pid).alone
        single = proc.rollup(process.pid)
        assert single is not None
        assert 64 * MIB < total < 64 * MIB + 40 * MIB
        assert sum(r.rss for p in below if (r := proc.rollup(p))) > 3 * 64 * MIB
        for pid in below:
            os.kill(pid, 9)


def test_shared_memory_counts_once() -> None:
    program = (
        "import mmap, os, signal\n"
        "held = mmap.mmap(-1, 64 << 20)\n"
        "for i in range(0, len(held), 4096): held[i] = 1\n"
        "touched, touch = os.pipe()\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        sum(held[i] for i in range(0, len(held), 4096))\n"
        "        os.write(touch, b'.')\n"
        "        signal.pause()\n"
        "for _ in range(3): os.read(touched, 1)"
    )
    with child("pass") as bare, child(program) as process:
        below = proc.descendants(process.pid)
        more = proc.tree_memory(process.pid).alone - proc.tree_memory(bare.pid).alone
        shared = [r.rss_shmem for p in below if (r := proc.rollup(p))]
        for pid in below:
            os.kill(pid, 9)
    assert shared == [64 * MIB] * 3
    assert 64 * MIB <= more < 64 * MIB + 3 * 10 * MIB  # with what each fork has of its own


def test_a_tree_is_the_sum_of_pss_and_what_others_share_of_its_files_is_said(
    tmp_path: Path,
) -> None:
    file = tmp_path / "library"
    file.write_bytes(os.urandom(MIB) * 32)
    program = (
        "import mmap\n"
        f"file = open({str(file)!r}, 'rb')\n"
        "held = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)\n"
        "sum(held[i] for i in range(0, len(held), 4096))"
    )
    with child(program) as process:
        before = proc.tree_memory(process.pid)
        with child(program):
            beside = proc.tree_memory(process.pid)
        after = proc.tree_memory(process.pid)
    # Half of each page is the other's now; the tree alone has not changed.
    assert abs(before.pss - beside.pss - 16 * MIB) < 3 * MIB
    assert abs(beside.outside - before.outside - 16 * MIB) < 3 * MIB
    assert abs(beside.alone - before.alone) < MIB / 4
    assert abs(after.pss - before.pss) < 3 * MIB
    assert proc.outside_note(beside.outside, beside.alone)


def rolled(*, anon: int, files: int, of_files: int, shmem: int = 0, of_shmem: int = 0) -> Rollup:
    """A process with so many MiB, and its part of those that others have as well."""
    return Rollup(
        rss=(anon + files + shmem) * MIB,
        pss=(anon + of_files + of_shmem) * MIB,
        pss_anon=anon * MIB,
        pss_shmem=of_shmem * MIB,
        anonymous=anon * MIB,
        private_dirty=anon * MIB,
        rss_shmem=shmem * MIB,
    )


@pytest.mark.parametrize(
    ("tree", "outside"),
    [
        ([], 0),
        ([rolled(anon=50, files=80, of_files=80)], 0),
        ([rolled(anon=50, files=80, of_files=40)], 40),
        # Two that share all their files with each other, and with nobody else.
        ([rolled(anon=50, files=80, of_files=40), rolled(anon=5, files=80, of_files=40)], 0),
        # One of them has files of its own beside: alone, the tree has more than its largest.
        ([rolled(anon=50, files=80, of_files=40), rolled(anon=5, files=70, of_files=50)], 0),
        # The same beside a third process that has the shared 80 as well.
        ([rolled(anon=9, files=80, of_files=27), rolled(anon=5, files=80, of_files=27)], 26),
        # Shared memory of a tree is no file.
        (
            [
                rolled(anon=9, files=10, of_files=5, shmem=64, of_shmem=32),
                rolled(anon=9, files=10, of_files=5, shmem=64, of_shmem=32),
            ],
            0,
        ),
    ],
)
def test_what_processes_outside_share(tree: list[Rollup], outside: int) -> None:
    assert proc.shared_outside(tree) == outside * MIB


def test_little_that_is_shared_outside_is_not_worth_a_note() -> None:
    assert proc.outside_note(5 * MIB, 400 * MIB) == ()
    assert proc.outside_note(0, 0) == ()
    (note,) = proc.outside_note(70 * MIB, 400 * MIB)
    assert "70.0 MiB" in note and "alone" in note


def test_a_process_that_is_gone_reads_as_none() -> None:
    with child("pass") as process:
        pid = process.pid
    assert proc.rollup(pid) is None
    assert proc.descendants(pid) == []
    assert proc.tree_memory(pid).alone == 0


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
