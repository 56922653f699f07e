"""What a program is told of its own tree is what the kernel says of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from memfit.tracking import peak_bytes, peaks_below, tree_bytes

BLOCK = 64 << 20
# Holds a block, lets it go, and waits until its standard input ends.
CHILD = f"""
import sys
block = bytearray(b"1" * {BLOCK})
sys.stdout.write("held\\n"), sys.stdout.flush(), sys.stdin.readline()
del block
sys.stdout.write("free\\n"), sys.stdout.flush(), sys.stdin.readline()
"""


@pytest.fixture
def child() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process
        process.kill()


def go_on(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None and child.stdout is not None
    child.stdin.write("\n")
    child.stdin.flush()
    assert child.stdout.readline() == "free\n"


def test_the_tree_holds_what_its_children_hold(child: subprocess.Popen[str]) -> None:
    own, held = tree_bytes(child.pid), tree_bytes()
    assert BLOCK <= own < held
    go_on(child)
    assert tree_bytes(child.pid) < own - BLOCK // 2
    assert tree_bytes() < held - BLOCK // 2


def test_a_peak_stays_when_the_memory_is_free_again(child: subprocess.Popen[str]) -> None:
    go_on(child)
    assert peak_bytes(child.pid) > BLOCK > tree_bytes(child.pid)
    assert peak_bytes(child.pid) in peaks_below()
    assert peak_bytes() != peak_bytes(child.pid)


def test_what_is_gone_holds_nothing(child: subprocess.Popen[str]) -> None:
    child.kill()
    child.wait()
    assert (tree_bytes(child.pid), peak_bytes(child.pid), peaks_below(child.pid)) == (0, 0, [])
