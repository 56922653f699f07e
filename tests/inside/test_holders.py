"""Every array is named by who holds it, wherever Python keeps it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.inside.target import Answer, Target

KIB = 1024

SCRIPT = """
import collections
import functools
import gc
import mmap
from multiprocessing import shared_memory
import numpy as np

# Sizes differ, so that each array is known by its own.
def array(kib):
    return np.ones(kib * 128)

class Slots:
    __slots__ = ("history", "unset")
    def __init__(self):
        self.history = array(101)

class Agent:
    shared = array(102)
    def __init__(self):
        self.memory = array(103)
        self.trajectory = []
        self.table = {"a": {"b": array(104)}}
        self.self = self

    @property
    def costly(self):
        raise SystemExit("a property was called")

    def __getattr__(self, name):
        raise SystemExit("__getattr__ was called")

    def __len__(self):
        raise SystemExit("__len__ was called")

    def __iter__(self):
        raise SystemExit("__iter__ was called")

    def __sizeof__(self):
        raise SystemExit("__sizeof__ was called")

    def __repr__(self):
        raise SystemExit("__repr__ was called")

    __eq__ = __hash__ = __bool__ = __repr__

class Transition:
    def __init__(self, kib):
        self.observation = array(kib)
        self.reward = 1.0

class Loose(list):
    pass

agent = Agent()
for _ in range(40):
    agent.trajectory.append(np.zeros(5700, dtype="u1"))
slots = Slots()
recent = collections.deque([array(105) for _ in range(3)], maxlen=9)
transitions = [Transition(70) for _ in range(20)]
loose = Loose([1, 2])
loose.extra = array(106)
untracked = ((array(107),), 3.0)
gc.collect()
assert not gc.is_tracked(array(1))
keys = {("a", 1): array(108)}
nodes = np.empty(3, dtype=object)
nodes[1] = array(109)
Point = collections.namedtuple("Point", "x y")
point = Point(x=array(110), y=2)

def closed():
    cached = array(111)
    return lambda: cached

lookup = closed()
bound = functools.partial(max, array(112))
method = Slots().__class__.__init__

def stream():
    window = array(113)
    while True:
        yield window

source = stream()
next(source)

views = array(116)
first, second = views[100:], views.reshape(2, -1)
del views

block = shared_memory.SharedMemory(create=True, size=117 * 1024)
shared = np.ndarray((117 * 128,), dtype="f8", buffer=block.buf)
mapped = mmap.mmap(-1, 118 * 1024)
over_map = np.frombuffer(mapped, dtype="u1")
alone = mmap.mmap(-1, 121 * 1024, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
gone = mmap.mmap(-1, 122 * 1024)
gone.close()
raw = bytearray(119 * 1024)
over_raw = np.frombuffer(raw, dtype="u1")

class Linked:
    def __init__(self, next):
        self.next = next
        self.part = np.ones(64)

chain = None
for _ in range(500):
    chain = Linked(chain)

def train():
    local = array(114)
    def inner():
        deep = array(115)
        kept = local
        ready()
        return deep, kept
    inner()

train()
del shared, over_raw
block.close()
block.unlink()
alone.resize(2 * 121 * 1024)  # nobody looks into it
print("well")
"""


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    with Target(SCRIPT, tmp_path_factory.mktemp("holders")) as target:
        found = target.ask()
        out, err = target.end()
    assert (out.strip(), err) == ("well", "")
    return found


@pytest.mark.parametrize(
    ("holder", "kib"),
    [
        ("slots.history", 101),
        ("Agent.shared", 102),
        ("agent.memory", 103),
        ("agent.table['a']['b']", 104),
        ("recent[*]", 3 * 105),
        ("loose.extra", 106),
        ("untracked[*][*]", 107),
        ("keys[*]", 108),
        ("point.x", 110),
        ("lookup.cached", 111),
        ("bound.args[*]", 112),
        ("source stream().window", 113),
        ("train().local", 114),
        ("inner().deep", 115),
        ("transitions[*].observation", 20 * 70),
    ],
)
def test_arrays_by_holder(answer: Answer, holder: str, kib: int) -> None:
    assert answer.nbytes(holder) == kib * KIB


def test_arrays_in_an_array_of_objects(answer: Answer) -> None:
    assert answer.nbytes("nodes") == 109 * KIB + 3 * 8


def test_a_list_that_grows_is_one_row(answer: Answer) -> None:
    row = answer.arrays["agent.trajectory[*]"]
    assert (row["nbytes"], row["count"]) == (40 * 5700, 40)
    assert row["extents"] == [] and row["small_bytes"] == 40 * 5700


def test_views_count_with_their_base(answer: Answer) -> None:
    holders = [h for h in ("first", "second") if h in answer.arrays]
    assert len(holders) == 1
    row = answer.arrays[holders[0]]
    assert row["nbytes"] == 116 * KIB and row["count"] == 1
    assert row["views"] == 2
    assert row["also"] == [{"first": "second", "second": "first"}[holders[0]]]


def test_extents_are_the_memory_itself(answer: Answer) -> None:
    for row in answer.arrays.values():
        large = sum(nbytes for _, nbytes in row["extents"])
        assert large + row["small_bytes"] == row["nbytes"], row


def test_memory_that_is_not_its_own_is_named(answer: Answer) -> None:
    shared = answer.arrays["shared"]
    assert shared["memory"] == "shared" and shared["mapping"].startswith("/dev/shm/")
    assert answer.arrays["mapped"]["memory"] == "shared"
    assert answer.nbytes("mapped") == 118 * KIB


def test_a_map_is_told_as_memory(answer: Answer) -> None:
    row = answer.arrays["alone"]
    assert (row["nbytes"], row["memory"], row["library"]) == (121 * KIB, "own", "mmap")
    assert answer.arrays["mapped"]["also"] == ["over_map"]
    assert "gone" not in answer.arrays


def test_an_array_over_bytes_is_no_second_memory(answer: Answer) -> None:
    assert "over_raw" not in answer.arrays
    assert answer.python("raw")["large_bytes"] >= 119 * KIB


def test_a_linked_list_is_one_holder(answer: Answer) -> None:
    found = [row for holder, row in answer.arrays.items() if holder.startswith("chain")]
    assert sum(row["nbytes"] for row in found) == 500 * 512
    assert len(found) == 2  # the first one, and all that follow it


def test_python_objects_have_owners(answer: Answer) -> None:
    assert answer.python("numpy")["kind"] == "package"
    assert answer.python("Python")["nbytes"] > 10**6
    for row in answer.fields["python"]:
        assert row["nbytes"] == row["small_bytes"] + row["large_bytes"] > 0


def test_what_the_walk_took_is_stated(answer: Answer) -> None:
    walk = answer.fields["walk"]
    assert walk["complete"] and walk["objects"] > 10_000
    assert 0 < walk["longest_hold_seconds"] <= walk["cpu_seconds"]
    assert walk["cpu_seconds"] > 0 and walk["seconds"] > 0
    assert answer.fields["schema"] == 1


def test_what_malloc_says_is_there(answer: Answer) -> None:
    malloc = answer.fields["pools"]["malloc"]
    assert malloc["in_use_bytes"] + malloc["free_bytes"] == malloc["arena_bytes"] > 0
    assert answer.fields["pools"]["pymalloc"]["blocks"] > 10_000


def test_a_growing_list_of_plain_objects_has_its_length(tmp_path: Path) -> None:
    script = """
    def explore():
        rewards = [float(n) for n in range(50_000)]
        ready()
        return rewards
    explore()
    """
    with Target(script, tmp_path) as target:
        row = target.ask().python("explore().rewards")
        target.end()
    assert row["kind"] == "run" and row["elements"] == 50_000
    assert row["objects"] == 50_001
    assert row["small_bytes"] == 50_000 * 32  # a float of 24 bytes takes a block of 32
    assert row["large_bytes"] >= 8 * 50_000
