"""Containers and instances of other processes are walked from outside, on each Python here."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from memfit.measure.live.outside_walk.answer import walk_outside
from tests.measure.live.outside_walk.children import PYTHONS, SECONDS, Walked, running

HOLDERS = """
import collections, dataclasses, json, sys, threading, time

COUNT = 3000
def texts(first):
    return [f"{first} {i:08d} {'x' * 40}" for i in range(COUNT)]

class Plain:
    def __init__(self, data):
        self.data = data
        self.number = 5

class Slotted:
    __slots__ = ("data", "other")

class Grown(Plain):
    pass

@dataclasses.dataclass
class Step:
    state: list
    reward: float

Pair = collections.namedtuple("Pair", "left right")

plain = Plain(texts("plain"))
slotted = Slotted()
slotted.data = texts("slotted")
grown = Grown(texts("grown"))
grown.__dict__["late"] = texts("late")
named = {"inner": texts("inner"), "other": 1}
table = {i: f"table {i:08d} {'y' * 40}" for i in range(COUNT)}
unique = set(texts("unique"))
recent = collections.deque(texts("recent"), maxlen=10_000)
pair = Pair(texts("left"), 1)
bound = Plain(texts("bound")).__init__
trajectory = [Step([float(i)] * 20, float(i)) for i in range(COUNT)]

def outer():
    kept = texts("kept")
    def inner():
        return kept
    return inner

closure = outer()

def numbers():
    held = texts("held")
    yield 1
    print(held)

generator = numbers()
next(generator)

def main():
    variable = texts("variable")
    in_cell = texts("cell")
    def use():
        return in_cell
    print("ready", flush=True)
    sys.stdin.readline()
    return variable, use

def thread():
    elsewhere = texts("elsewhere")
    time.sleep(1000)
    print(elsewhere)

threading.Thread(target=thread, daemon=True).start()
time.sleep(0.3)
main()
"""
COUNT = 3000
LISTS = {
    "plain.data",
    "slotted.data",
    "grown.data",
    "grown.late",
    "named['inner']",
    "unique",
    "recent",
    "pair.left",
    "bound.data",
    "closure.kept",
    "main().variable",
    "main().in_cell",
    "thread().elsewhere",
    "generator.numbers().held",
}


@pytest.mark.parametrize("python", PYTHONS)
def test_each_kind_of_holder_is_named_with_what_it_holds(python: str, tmp_path: Path) -> None:
    with running(HOLDERS, tmp_path, python) as process:
        walked = Walked(process.pid)
    missing = LISTS - walked.python.keys()
    assert not missing, sorted(walked.python)
    for holder in LISTS:
        row = walked.python[holder]
        # Each list has so many texts of its own, of about 105 to 120 bytes, and itself.
        assert COUNT <= row["objects"] <= COUNT + 20, holder
        assert COUNT * 90 <= row["small_bytes"] <= COUNT * 128, holder
        assert row["elements"] == COUNT
    assert walked.python["table"]["objects"] >= 2 * COUNT - 300  # small numbers are Python's own
    steps = walked.python["trajectory"]
    assert steps["elements"] == COUNT


@pytest.mark.parametrize("python", PYTHONS)
def test_sizes_are_those_that_python_itself_tells(python: str, tmp_path: Path) -> None:
    script = """
    import json, sys, sysconfig
    class Thing:
        def __init__(self, n): self.a = n
    texts = [f"text {i} " + "x" * (i % 600) for i in range(2000)]
    wide = ["\\u20ac" * 20 + str(i) for i in range(2000)]
    numbers = [2**70 + i for i in range(2000)]
    data = [bytes(i % 700) + b"x" for i in range(2000)]
    tuples = [(i, i) * 3 for i in range(2000)]
    dicts = [{"a": i, "b": i} for i in range(2000)]
    sets = [{str(i), str(i + 1), *map(str, range(20))} for i in range(200)]
    def taken(size, tracked): return (size + 16 * tracked + 15) & ~15
    import gc
    told = {}
    for name in ("texts", "wide", "numbers", "data", "tuples"):
        things = globals()[name]
        # The collector's header is a part of what is told of those that it knows.
        told[name] = sum((sys.getsizeof(t) + 15) & ~15 for t in things)
    print("ready", flush=True)
    print(json.dumps(told), flush=True)
    sys.stdin.readline()
    """
    with running(script, tmp_path, python) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        walked = Walked(process.pid)
    for name, wanted in told.items():
        row = walked.python[name]
        table = 8 * 2000
        found = row["small_bytes"] + row["large_bytes"]
        more = 28 * 12_000 if name == "tuples" else 0  # the numbers in them
        assert wanted + table <= found <= wanted * 1.01 + 1.3 * table + more, name
    assert walked.python["dicts"]["objects"] >= 2000


def test_what_a_million_elements_hold_is_read_from_a_sample(tmp_path: Path) -> None:
    script = """
    import sys
    rows = [(i, str(i) * 3) for i in range(10**6, 2 * 10**6)]
    print("ready", flush=True)
    sys.stdin.readline()
    """
    with running(script, tmp_path) as process:
        row = Walked(process.pid).python["rows"]
    made = ((1, 2), 10**6, "1234567" * 3)  # whose sizes differ from one Python to the next
    each = sum(-(-sys.getsizeof(one) // 16) * 16 for one in made)
    assert row["elements"] == 10**6
    assert row["small_bytes"] == pytest.approx(10**6 * each, rel=0.05)
    assert row["objects"] == pytest.approx(3 * 10**6, rel=0.05)


def test_what_a_package_holds_is_named_where_that_is_asked(tmp_path: Path) -> None:
    script = """
    import logging, time
    for number in range(500):
        logging.getLogger(f"episode {number}").data = bytearray(3000)
    print("ready", flush=True)
    time.sleep(600)
    """
    with running(script, tmp_path) as process:
        pid = process.pid
        unnamed = walk_outside(pid, seconds=SECONDS, roles={}, variables_only=True)
        one = walk_outside(
            pid, seconds=SECONDS, roles={}, variables_only=True, packages=["logging"]
        )
        every = walk_outside(pid, seconds=SECONDS, roles={}, variables_only=True, packages=None)
    whole = 500 * 3000
    assert all(row["nbytes"] < whole / 10 for row in unnamed["python"])
    (row,) = [row for row in one["python"] if row["nbytes"] >= whole]
    assert row["holder"] == "logging.Logger.manager.loggerDict[*].data"
    assert any(row["nbytes"] >= whole for row in every["python"])
