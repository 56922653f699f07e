"""Processes that change all the time are walked without harm to them or to the walk."""

from __future__ import annotations

import subprocess
import time
from functools import partial
from pathlib import Path

import pytest

from memfit.inside.holders import python_rows
from memfit.measure.kernel.mappings import mappings
from memfit.measure.kernel.process_memory import ProcessMemory
from memfit.measure.live.outside_walk.answer import walk_outside
from memfit.measure.live.outside_walk.interpreter import Interpreter, NotWalkable
from memfit.measure.live.outside_walk.memory_copy import MemoryCopy
from memfit.measure.live.outside_walk.walk_phases import WholeWalk
from tests import faults
from tests.measure.live.outside_walk.children import PYTHONS, running

MUTATES = """
import collections, os, random, sys, threading

class Thing:
    def __init__(self, n):
        self.values = [n] * (n % 50)

steady = [f"steady {i:08d}" for i in range(5000)]
lists, dicts, sets, queue = [], {}, set(), collections.deque(maxlen=3000)
counted = 0

def mutate(seed):
    global counted
    r = random.Random(seed)
    while True:
        n = r.randrange(10**6)
        lists.append(Thing(n))
        if len(lists) > 5000:
            del lists[: r.randrange(4000)]
        dicts[n % 5000] = {"a": [n], n: str(n) * 20}
        if n % 997 == 0:
            dicts.clear()
        sets.add((n % 3000, "x" * (n % 300)))
        if n % 1499 == 0:
            sets.clear()
        queue.append(bytearray(n % 2000))
        setattr(Thing(n), f"name{n % 100}", n)
        counted += 1

for seed in range(4):
    threading.Thread(target=mutate, args=(seed,), daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    print(counted, flush=True)
"""


def count(process: subprocess.Popen[str]) -> int:
    """How far it says that it is."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def goes_on(process: subprocess.Popen[str], since: int) -> bool:
    return count(process) > since


@pytest.mark.parametrize("python", PYTHONS)
def test_one_that_changes_its_containers_all_the_time(python: str, tmp_path: Path) -> None:
    with running(MUTATES, tmp_path, python) as process:
        for _ in range(4):
            answer = walk_outside(process.pid, seconds=60, roles={})
            rows = {row["holder"]: row for row in answer["python"]}
            assert rows["steady"]["elements"] == 5000
            assert 5000 <= rows["steady"]["objects"] <= 5002
            # Nothing is told that cannot be: all of it is less than 100 MB.
            assert sum(row["nbytes"] for row in answer["python"]) < 100e6
            assert faults.until(partial(goes_on, process, count(process)))


GROWS_MEANWHILE = """
import sys

rows = [bytes(100) + str(i).encode() for i in range(5_000)]
names = {f"name {i}": bytearray(100) for i in range(5_000)}
print("ready", flush=True)
for line in sys.stdin:
    rows += [bytes(100) + str(i).encode() for i in range(400_000)]
    names.update({f"more {i}": bytearray(100) for i in range(100_000)})
    others = [list(range(1000, 1100)) for _ in range(1000)]  # where the tables were before
    print("grown", flush=True)
"""


@pytest.mark.parametrize("python", PYTHONS)
def test_containers_that_have_moved_since_they_were_copied_are_followed(
    python: str, tmp_path: Path
) -> None:
    with (
        running(GROWS_MEANWHILE, tmp_path, python) as process,
        ProcessMemory(process.pid) as memory,
    ):
        assert process.stdin is not None and process.stdout is not None
        maps = mappings(process.pid)
        copy = MemoryCopy(maps, memory, 2**27)
        walk = WholeWalk(Interpreter(process.pid, maps, copy), maps, {})
        walk.variables(time.monotonic() + 60)
        assert not walk.cut
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "grown\n"
        time.sleep(max(0.0, 0.3 - copy.age))  # by then it is read again
        again = WholeWalk(walk.python, maps, {})
        again.variables(time.monotonic() + 60)
        assert not again.cut
        rows = {row["holder"]: row for row in python_rows(again.names.tree)}
    assert rows["rows"]["elements"] == 405_000
    assert rows["rows"]["objects"] == pytest.approx(405_000, rel=0.02)
    assert rows["names"]["objects"] == pytest.approx(210_000, rel=0.02)


BESIDE_ANOTHER = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
getattr(interpreters, "exec", interpreters.run_string)(
    interpreters.create(), "its = [bytes(100) + str(i).encode() for i in range(3000)]"
)
mine = [bytes(100) + str(i).encode() for i in range(3000)]
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("python", PYTHONS)
def test_the_main_interpreter_is_walked_where_there_are_others(python: str, tmp_path: Path) -> None:
    with running(BESIDE_ANOTHER, tmp_path, python) as process:
        answer = walk_outside(process.pid, seconds=60, roles={})
    rows = {row["holder"]: row["objects"] for row in answer["python"]}
    assert rows["mine"] == 3001
    assert "its" not in rows


def test_a_walk_ends_in_time_with_what_it_has(tmp_path: Path) -> None:
    script = """
    import sys
    rows = [{"step": i, "text": str(i)} for i in range(300_000)]
    print("ready", flush=True)
    sys.stdin.readline()
    """
    with running(script, tmp_path) as process:
        answer = walk_outside(process.pid, seconds=0.0, roles={})
        assert not answer["walk"]["complete"]


def test_what_is_no_python_cannot_be_walked(tmp_path: Path) -> None:
    script = """
    import os
    print("ready", flush=True)
    os.execvp("cat", ["cat"])
    """
    with running(script, tmp_path) as process:
        time.sleep(0.5)
        with pytest.raises(NotWalkable, match="interpreter"):
            walk_outside(process.pid, seconds=5, roles={})


WAITS = "import sys\nprint('ready', flush=True)\nsys.stdin.read()\n"


def test_words_that_are_no_addresses_read_as_zeros(tmp_path: Path) -> None:
    with running(WAITS, tmp_path) as process, ProcessMemory(process.pid) as memory:
        maps = mappings(process.pid)
        python = Interpreter(process.pid, maps, MemoryCopy(maps, memory, 2**26))
        for address in (-8, 0, 2**63, 2**64 - 8, 2**64 + 8):
            assert python._now(address, 2) == [0, 0]
