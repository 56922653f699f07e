"""The guard tells a training's peak, and raises where it holds more than it may."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from memfit.errors import OverLimit
from memfit.tracking.guard import Guard, usable_bytes
from memfit.tracking.side_by_side import held, tree

MIB = 2**20


def seen(guard: Guard, amount: int) -> bool:
    end = time.monotonic() + 20
    while guard.now_bytes < amount and time.monotonic() < end:
        time.sleep(0.02)
    return guard.now_bytes >= amount


def test_over_the_limit_it_raises_and_below_it_does_not() -> None:
    with Guard(2**62) as guard:
        before = guard.now_bytes
        guard.limit = before + 48 * MIB
        guard.check()
        block = bytearray(b"1" * (96 * MIB))
        assert seen(guard, before + 80 * MIB)
        with pytest.raises(OverLimit, match=r"ended at .* over the limit of") as told:
            guard.check()
        assert told.value.exit_code == 3
        del block
        end = time.monotonic() + 20
        while guard.now_bytes > guard.limit and time.monotonic() < end:
            time.sleep(0.02)
        guard.check()
    assert guard.peak_bytes >= before + 80 * MIB > guard.now_bytes


def test_children_count() -> None:
    program = "block = bytearray(b'1' * (64 << 20)); print(flush=True); input()"
    with Guard(2**62) as guard:
        before = guard.now_bytes
        process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        try:
            assert process.stdout is not None and process.stdout.readline()
            assert seen(guard, before + 60 * MIB)
        finally:
            process.communicate(b"\n")
    assert guard.peak_bytes >= before + 60 * MIB


def test_nothing_is_left_of_it_when_it_is_closed() -> None:
    before = threading.active_count()
    guard = Guard(2**62)
    assert threading.active_count() == before + 1
    guard.close()
    assert threading.active_count() == before


def test_what_may_be_used_is_more_than_is_held_and_bounded() -> None:
    assert held(tree(os.getpid())).total < usable_bytes() < 2**50


def test_memory_beyond_the_room_is_refused() -> None:
    """In a process of its own, since it could not be taken back for good."""
    code = (
        "from memfit.tracking.guard import refuse_beyond\n"
        "refuse_beyond(64 << 20)\n"
        "small = bytearray(32 << 20)\n"
        "try:\n"
        "    bytearray(128 << 20)\n"
        "except MemoryError:\n"
        "    print('refused')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "refused\n"


def test_asking_for_memory_loads_no_recorder() -> None:
    code = (
        "import sys, memfit.tracking.guard, memfit.tracking.side_by_side\n"
        "print({'sqlite3', 'numpy', 'memfit.analyses'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
