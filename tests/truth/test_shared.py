"""Shared data between real processes: one copy, made once, and gone with the last holder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

from memfit.dropins import LightVecEnv, shared
from memfit.dropins.sharing.data import shared_nbytes
from memfit.dropins.sharing.find import file_name
from memfit.dropins.sharing.key import named_digest
from tests.dropins.vecenv_envs import Walk
from tests.truth.dropin_bytes import shared as shared_size

pytestmark = [pytest.mark.truth, pytest.mark.timeout(120)]

# Makes data under a key, says what it found, and holds it until told to end.
HOLDER = """
import os, sys, time
import numpy as np
from memfit.dropins import shared

key, log, seconds, size = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])

def make():
    with open(log, "a") as file:
        file.write(f"{os.getpid()}\\n")
    if seconds < 0 and os.fork() == 0:
        time.sleep(30)  # has the maker's descriptors, and lives on
        os._exit(0)
    time.sleep(abs(seconds))
    return {"data": np.arange(size), "small": [np.ones(3)]}

found = shared(make, key=key)
print(int(found["data"].sum()), flush=True)
for _ in sys.stdin:
    with open("/proc/self/smaps") as file:
        lines = file.read().splitlines()
    at = next(i for i, line in enumerate(lines) if "/memfd:memfit-" in line)
    facts = dict(line.split()[:2] for line in lines[at + 1 : at + 20] if ":" in line)
    print(facts["Rss:"], facts["Pss:"], flush=True)
"""


class Holder:
    """A process that holds shared data."""

    def __init__(self, key: str, log: Path, seconds: float = 0.0, size: int = 1000) -> None:
        command = [sys.executable, "-c", HOLDER, key, str(log), str(seconds), str(size)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    @property
    def _out(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    def total(self) -> int:
        """The sum of the data, once it is there."""
        return int(self._out.readline())

    def memory(self) -> tuple[int, int]:
        """Bytes of the data that are resident, and its proportional set size."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        resident, pss = self._out.readline().split()
        return int(resident) * 1024, int(pss) * 1024

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        self.process.communicate()
        return self.process.returncode


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "made"


@pytest.fixture
def key(tmp_path: Path) -> str:
    return str(tmp_path)


@pytest.fixture
def holders() -> Iterator[list[Holder]]:
    found: list[Holder] = []
    yield found
    for holder in found:
        holder.kill()
        for stream in (holder.process.stdin, holder.process.stdout):
            if stream is not None:
                stream.close()


def made(log: Path) -> list[str]:
    return log.read_text().split() if log.exists() else []


def is_there(key: str) -> bool:
    """Whether any process has the data of a key."""
    wanted = f"/memfd:{file_name(named_digest(key))} (deleted)"
    for fd in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if str(fd.readlink()) == wanted:
                return True
        except OSError:
            continue
    return False


def files() -> list[str]:
    return [name for name in os.listdir("/dev/shm") if "memfit" in name]


@pytest.mark.parametrize(
    "shapes", [[(1,)], [(1000, 7), (64,)], [(3, 0)], [(100_000,), (5,), (12, 12)], []]
)
def test_bytes_are_those_of_the_formula(shapes: list[tuple[int, ...]]) -> None:
    arrays = [np.zeros(shape, np.int16) for shape in shapes]
    keep = shared(lambda: {"all": arrays, "one": np.zeros(1)}, key="sizes")
    size = shared_size(*[array.nbytes for array in arrays], 8)
    assert shared_nbytes(lambda: 0, key="sizes") == size.evaluate({})
    assert len(keep["all"]) == len(shapes)


def test_the_kernel_counts_one_copy(log: Path, key: str, holders: list[Holder]) -> None:
    size = 1_000_000
    holders += [Holder(key, log, size=size) for _ in range(3)]
    expected = shared_size(8 * size, 24).evaluate({})
    assert [holder.total() for holder in holders] == [size * (size - 1) // 2] * 3
    found = [holder.memory() for holder in holders]
    # The last array was read by nobody; a share is rounded down to KiB.
    assert all(0 <= expected - resident <= 4096 for resident, _ in found)
    assert 0 <= expected - sum(pss for _, pss in found) <= 4096 + 3 * 1024
    assert len(made(log)) == 1


def test_eight_processes_at_once_make_it_once(log: Path, key: str, holders: list[Holder]) -> None:
    holders += [Holder(key, log, seconds=0.3) for _ in range(8)]
    assert [holder.total() for holder in holders] == [499_500] * 8
    assert len(made(log)) == 1
    assert [holder.end() for holder in holders] == [0] * 8


def test_it_outlives_its_maker_and_goes_with_the_last(
    log: Path, key: str, holders: list[Holder]
) -> None:
    first = Holder(key, log)
    holders.append(first)
    first.total()
    second = Holder(key, log)
    holders.append(second)
    second.total()
    first.kill()  # the maker
    third = Holder(key, log)
    holders.append(third)
    assert third.total() == 499_500 and len(made(log)) == 1
    second.kill()  # one that found it
    assert is_there(key)
    third.kill()  # the last
    assert not is_there(key)
    fourth = Holder(key, log)
    holders.append(fourth)
    assert fourth.total() == 499_500 and len(made(log)) == 2


def test_another_takes_over_where_the_maker_is_killed(
    log: Path, key: str, holders: list[Holder]
) -> None:
    slow = Holder(key, log, seconds=60)
    holders.append(slow)
    until = time.monotonic() + 60
    while not made(log) and time.monotonic() < until:
        time.sleep(0.01)
    waiting = [Holder(key, log) for _ in range(2)]
    holders += waiting
    time.sleep(0.3)
    slow.kill()
    # The factories differ only by how long they sleep, which is a global of theirs.
    assert [holder.total() for holder in waiting] == [499_500] * 2
    assert len(made(log)) == 2


@pytest.mark.parametrize("when", ["making", "made"])
def test_a_fork_that_lives_on_keeps_nobody_waiting(
    log: Path, key: str, holders: list[Holder], when: str
) -> None:
    first = Holder(key, log, seconds=-0.01 if when == "made" else -60)
    holders.append(first)
    if when == "made":
        first.total()
    else:
        until = time.monotonic() + 60
        while not made(log) and time.monotonic() < until:
            time.sleep(0.01)
    first.kill()
    second = Holder(key, log)
    holders.append(second)
    assert second.total() == 499_500 and len(made(log)) == 2


def test_all_killed_at_once_leave_nothing(log: Path, key: str, holders: list[Holder]) -> None:
    holders += [Holder(key, log) for _ in range(3)]
    for holder in holders:
        holder.total()
    assert is_there(key)
    for holder in holders:
        os.kill(holder.process.pid, signal.SIGKILL)
    for holder in holders:
        holder.process.wait()
    assert not is_there(key) and not files()


class Levels(Walk):
    """An env that reads a level which all envs share."""

    def __init__(self, log: str) -> None:
        super().__init__()

        def load() -> Any:
            with Path(log).open("a") as file:
                file.write("made\n")
            return {"tiles": np.ones((1000, 1000), np.uint8)}

        self.tiles = shared(load)["tiles"]

    def total(self) -> int:
        return int(self.tiles.sum())

    def dirty(self) -> int:
        """Private bytes of the level in this process."""
        lines = Path("/proc/self/smaps").read_text().splitlines()
        at = [i for i, line in enumerate(lines) if "/memfd:memfit-" in line and " r--" in line]
        return sum(int(lines[i + j].split()[1]) for i in at for j in range(1, 20)
                   if lines[i + j].startswith("Private_Dirty:"))  # fmt: skip


def test_workers_of_a_vector_env_share_without_a_key(log: Path) -> None:
    name = str(log)
    env = LightVecEnv([lambda: Levels(name) for _ in range(6)], workers=3)
    assert env.env_method("total") == [1_000_000] * 6
    assert made(log) == ["made"]
    assert env.env_method("dirty") == [0] * 6
    mine = Levels(name)  # and the training itself
    assert mine.total() == 1_000_000 and made(log) == ["made"]
    env.close()


APART = """
import sys
import numpy as np
from pathlib import Path
from memfit.dropins import shared

def load():
    with open(sys.argv[1], "a") as file:
        file.write("made\\n")
    return np.ones(3)

kept = shared(load)
print("there", flush=True)
sys.stdin.read()
"""


def test_runs_that_are_started_apart_share_only_by_a_key(log: Path) -> None:
    """The same code, arguments and directory: but who knows what files it reads."""
    runs = []
    for token in ("a", "b", "a"):
        process = subprocess.Popen(
            [sys.executable, "-c", APART, str(log)],
            env={**os.environ, "MEMFIT_RUN": token},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None and process.stdout.readline() == b"there\n"
        runs.append(process)
    assert len(made(log)) == 2
    for process in runs:
        process.communicate()
