"""Children are waited for within limits, and their peaks have known answers."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from memfit.measure.children.supervision import Supervised, supervise

MIB = 2**20
TOUCH = "bytearray(b'x') * ({mib} << 20)"


@contextmanager
def child(code: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def peak_of(code: str) -> Supervised:
    with child(code) as process:
        seen = supervise(process, memory=2**31, timeout=60)
        assert process.returncode == 0
    return seen


@pytest.fixture(scope="module")
def bare() -> int:
    """A Python that only waits."""
    return peak_of("import time, os, mmap, subprocess; time.sleep(0.4)").peak_bytes


def test_a_spike_of_the_main_process_comes_on_top_of_those_below(bare: int) -> None:
    """It is over within a few looks, and far shorter than the time between two at the tree."""
    seen = peak_of(
        "import os, mmap, time\n"
        f"held = {TOUCH.format(mib=60)}\n"
        "touched, touch = os.pipe()\n"
        "if (pid := os.fork()) == 0:\n"
        f"    own = {TOUCH.format(mib=50)}\n"
        "    os.write(touch, b'.'); time.sleep(60)\n"
        "os.read(touched, 1); time.sleep(0.4)\n"
        f"{TOUCH.format(mib=80)}\n"
        "time.sleep(0.4); os.kill(pid, 9); os.wait()"
    )
    assert abs(seen.peak_bytes - bare - (60 + 50 + 80) * MIB) < 12 * MIB


def test_a_spike_that_was_over_before_others_came_is_not_added_to_them(bare: int) -> None:
    below = f"import time; held = {TOUCH.format(mib=70)}; time.sleep(0.4)"
    seen = peak_of(
        "import subprocess, sys, time\n"
        f"{TOUCH.format(mib=90)}\n"
        "time.sleep(0.3)\n"
        f"subprocess.run([sys.executable, '-c', {below!r}])\n"
        "time.sleep(0.2)"
    )
    assert abs(seen.peak_bytes - bare - 90 * MIB) < 12 * MIB


@pytest.mark.alone
def test_shared_memory_that_the_main_process_comes_to_read_counts_once(bare: int) -> None:
    seen = peak_of(
        "import os, mmap, time\n"
        "shared = mmap.mmap(-1, 96 << 20)\n"
        "touched, touch = os.pipe()\n"
        "if (pid := os.fork()) == 0:\n"
        "    for i in range(0, len(shared), 4096): shared[i] = 1\n"
        "    os.write(touch, b'.'); time.sleep(60)\n"
        "os.read(touched, 1); time.sleep(0.4)\n"
        "sum(shared[i] for i in range(0, len(shared), 4096))\n"
        "time.sleep(0.3); os.kill(pid, 9); os.wait()"
    )
    assert abs(seen.peak_bytes - bare - 96 * MIB) < 12 * MIB


def test_what_is_shared_outside_is_in_the_peak_and_said() -> None:
    with child("import time; time.sleep(60)"):
        seen = peak_of("import time; time.sleep(0.4)")
    # Both are the same interpreter: at least half of its pages are the other's as well.
    assert seen.outside_bytes > MIB
    assert seen.peak_bytes > seen.outside_bytes


@pytest.mark.parametrize(
    ("until", "memory", "timeout", "over", "late"),
    [
        (lambda: False, 2**31, 0.3, False, True),
        (lambda: False, 40 * MIB, 60, True, False),
        (lambda: True, 40 * MIB, 60, False, False),
    ],
)
def test_a_wait_ends_at_the_first_limit_or_when_it_is_told(
    until: Callable[[], bool], memory: int, timeout: float, over: bool, late: bool
) -> None:
    with child(f"import time; held = {TOUCH.format(mib=80)}; time.sleep(60)") as process:
        started = time.monotonic()
        seen = supervise(process, memory=memory, timeout=timeout, until=until)
        assert time.monotonic() - started < 30
        assert process.poll() is None  # it is left to whoever asked
    assert (seen.over_limit, seen.timed_out) == (over, late)


def test_the_peak_so_far_is_told_while_it_runs() -> None:
    told: list[int] = []
    with child(f"import time; held = {TOUCH.format(mib=80)}; time.sleep(0.5)") as process:
        seen = supervise(process, memory=2**31, timeout=60, alive=told.append)
    assert told == sorted(told) and len(told) > 2
    assert 80 * MIB < told[-1] <= seen.peak_bytes
