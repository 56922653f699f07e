"""Nothing of a training is called, warned of or moved, whatever its objects are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.inside.target import Target

METACLASSES = """
import os
import numpy as np

asked = False

def say(what):
    if asked:
        os.write(2, what)

class Loud(type):
    def __hash__(cls):
        say(b"hash")
        return 1
    def __eq__(cls, other):
        say(b"eq")
        return True
    def __getattribute__(cls, name):
        if name in ("__mro__", "__dict__", "__name__", "__module__"):
            say(b"getattribute " + name.encode())
        return super().__getattribute__(name)
    def __instancecheck__(cls, other):
        say(b"instancecheck")
        return True
    def __subclasscheck__(cls, other):
        say(b"subclasscheck")
        return True

class Name(str):
    def __format__(self, how):
        say(b"format")
        return "x"
    def __eq__(self, other):
        say(b"eq of a name")
        return True
    __hash__ = str.__hash__

class Agent(metaclass=Loud):
    __slots__ = ("memory", "__dict__")
class Replay(list, metaclass=Loud): pass
class Table(dict, metaclass=Loud): pass
class Pair(tuple, metaclass=Loud): pass
class Frames(np.ndarray, metaclass=Loud):
    @property
    def size(self):
        say(b"size")
        return 1

Agent.__name__ = Name("Agent")
agent = Agent()
agent.memory = np.ones(30_000)
agent.more = np.ones(40_000)
vars(agent)[Name("odd")] = np.ones(50_000)
replay = Replay([agent, np.ones(60_000)])
replay.beside = np.ones(70_000)
table = Table(a=np.ones(80_000))
pair = Pair((np.ones(90_000), Agent))
frames = np.ones(100_000).view(Frames)
objects = np.array([agent, None], dtype=object).view(Frames)
asked = True
ready()
asked = False
"""


def test_metaclasses_are_not_asked(tmp_path: Path) -> None:
    with Target(METACLASSES, tmp_path) as target:
        answer = target.ask(duplicates=True)
        assert target.end() == ("", "")
    for holder, numbers in {
        "agent.memory": 30_000,
        "agent.more": 40_000,
        "agent[*]": 50_000,
        "replay[*]": 60_000,
        "replay.beside": 70_000,
        "table['a']": 80_000,
        "pair[*]": 90_000,
        "frames": 100_000,
    }.items():
        assert answer.nbytes(holder) == 8 * numbers


TENSORS = """
import os
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, dispatch_device=True,
            dispatch_sizes_strides_policy="sizes",
        )
    def __init__(self, inner):
        self.inner = inner
    @classmethod
    def __torch_dispatch__(cls, call, types, given=(), named=None):
        os.write(2, b"dispatch")
        raise SystemExit("a tensor was asked")

with FakeTensorMode() as mode:
    fake = torch.empty(1000, 1000)
    parameter = torch.nn.Parameter(torch.empty(100, 100))
wrapped = Wrapper(torch.ones(50_000))
plain = torch.ones(60_000)
ready()
"""


@pytest.mark.torch
def test_tensors_that_answer_for_themselves_are_not_asked(tmp_path: Path) -> None:
    """What such a tensor wraps is told; a fake one has no memory, and no warning appears."""
    with Target(TENSORS, tmp_path) as target:
        answer = target.ask()
        assert target.end() == ("", "")
    assert answer.nbytes("plain") == 4 * 60_000
    assert answer.nbytes("wrapped['inner']") == 4 * 50_000
    assert not [holder for holder in answer.arrays if holder.startswith(("fake", "parameter"))]


@pytest.mark.parametrize("most", [0, 64, 30])
def test_the_first_free_numbers_are_the_programs_own(most: int, tmp_path: Path) -> None:
    """Also while it is asked; with few files allowed, the highest that can be had are taken."""
    script = f"""
    import os, resource, threading
    if {most}:
        resource.setrlimit(resource.RLIMIT_NOFILE, ({most}, {most}))
    def used():
        return sorted(int(n) for n in os.listdir("/proc/self/fd"))
    held = [float(n) for n in range(300_000)]
    ready()
    print(used())
    opened = open(os.devnull)
    print(opened.fileno())
    """
    limited = "bash", "-c", f'ulimit -n {most}; exec "$@"', "-"
    with Target(script, tmp_path, before=limited if most else ()) as target:
        target.ask()
        # listdir() itself has a file for as long as it reads.
        used, first = target.end()[0].splitlines()
    assert first == "3"
    own = [number for number in map(int, used.strip("[]").split(",")) if number > 3]
    assert len(own) == 2 and min(own) >= (20 if most else 200)
