"""Pages that are neither Python's nor malloc's are told apart from what both have given out."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from memfit.inside.pools import malloc_figures
from memfit.measure.kernel.proc import Tree
from memfit.measure.profile.env_readings import Said, full_reading
from memfit.model import Counted, EnvReading
from memfit.units import KIB, MIB

PROGRAM = """
import gc, mmap, sys, threading
sys.path[:0] = {path!r}
from memfit.inside.pools import malloc_figures

kept, never = {{}}, threading.Event()

def mapped(flags):
    block = mmap.mmap(-1, 8 << 20, flags=flags | mmap.MAP_ANONYMOUS)
    block.write(bytes(8 << 20))
    return block

def threads():
    for _ in range(40):
        threading.Thread(target=never.wait, daemon=True).start()

DO = {{
    "objects": lambda: kept.update(objects=[float(i) for i in range(200_000)]),
    "objects gone": lambda: kept.pop("objects"),
    "half of them": lambda: kept.update(half=[float(i) for i in range(100_000)]),
    "block": lambda: kept.update(block=b"x" * (8 << 20)),
    "private": lambda: kept.update(private=mapped(mmap.MAP_PRIVATE)),
    "shared": lambda: kept.update(shared=mapped(mmap.MAP_SHARED)),
    "threads": threads,
}}
while True:
    f = malloc_figures()
    print(f.uordblks, f.hblkhd, f.fordblks, f.arena, flush=True)
    DO[input()]()
    gc.collect()
"""


class Program:
    """A process that does one thing after the other, and is read where it waits."""

    def __init__(self) -> None:
        words = [sys.executable, "-c", PROGRAM.format(path=sys.path)]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def read(self) -> EnvReading:
        assert self.process.stdout is not None
        used, mapped, free, arena = map(int, self.process.stdout.readline().split())
        said = Said(
            frames=0,
            episodes=0,
            ended=True,
            nanoseconds=0,
            in_use=used,
            mapped=mapped,
            free=free,
            arena=arena,
            collects=True,
        )
        found = full_reading(Tree(main=self.process.pid), said, 1, collected=True)
        assert found is not None
        return found

    def do(self, what: str) -> EnvReading:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        return self.read()


@pytest.fixture
def program() -> Iterator[Program]:
    if malloc_figures() is None:
        pytest.skip("malloc of this C library says nothing of itself")
    made = Program()
    yield made
    made.process.kill()
    made.process.communicate()


@pytest.mark.parametrize(
    ("what", "apart"),
    [("objects", 0), ("block", 0), ("private", 8 * MIB), ("shared", 8 * MIB)],
)
def test_only_pages_of_neither_are_apart(program: Program, what: str, apart: int) -> None:
    before = program.read()
    after = program.do(what)
    assert after.held - before.held >= 4 * MIB
    assert after.apart - before.apart == pytest.approx(apart, abs=256 * KIB)


def test_pools_that_are_free_for_a_while_are_pythons_all_the_same(program: Program) -> None:
    program.read()
    full = program.do("objects")
    program.do("objects gone")
    half = program.do("half of them")
    assert full.counts[Counted.PYTHON] - half.counts[Counted.PYTHON] >= 2 * MIB
    assert half.apart - full.apart == pytest.approx(0, abs=MIB + 256 * KIB)


def test_threads_take_the_pages_of_their_stacks(program: Program) -> None:
    before = program.read()
    after = program.do("threads")
    assert after.counts[Counted.THREADS] - before.counts[Counted.THREADS] == 40
    assert 40 * 4 * KIB <= after.apart - before.apart <= 40 * 64 * KIB
