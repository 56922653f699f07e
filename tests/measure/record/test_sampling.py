"""The memory of many processes is the sum of their PSS, whenever they were started."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from memfit.measure.kernel import proc
from memfit.measure.record import sampling
from memfit.measure.record.sampling import Sampler
from tests.faults import MIB, python

# Holds 80 MiB. With each line it starts 30 workers that hold 3 MiB each of their own, or grows by
# 40 MiB, of its own or of shared memory, or ends its workers.
POOL = """
import mmap, os, signal, sys, time
kept = [bytearray(b"1") * (80 << 20)]
workers = []
print("ready", flush=True)
for line in sys.stdin:
    if line == "grow\\n":
        kept.append(bytearray(b"1") * (40 << 20))
    if line == "share\\n":
        kept.append(mmap.mmap(-1, 40 << 20))
        for i in range(0, 40 << 20, 4096):
            kept[-1][i] = 1
    if line == "end\\n":
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
            os.waitpid(worker, 0)
    for _ in range(30 * (line == "fork\\n")):
        reader, writer = os.pipe()
        workers.append(os.fork())
        if workers[-1] == 0:
            own = bytearray(b"1") * (3 << 20)
            os.write(writer, b"1")
            time.sleep(100)
        os.read(reader, 1)
        os.close(reader), os.close(writer)
    print("done", flush=True)
"""


class Pool:
    """The processes, and the exact readings that were taken of them."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.sampler = Sampler(proc.Tree(main=process.pid))

    def does(self, what: str) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"
        self.sampler._next_members = 0.0  # as after a moment

    @property
    def told(self) -> int:
        return self.sampler.sample(0.0).bytes

    @property
    def true(self) -> int:
        return proc.tree_memory(self.process.pid).pss


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    """Of its own accord, its sampler reads exactly once and then never again."""
    monkeypatch.setattr(sampling, "_LEAST_SECONDS", 1000.0)
    with _started() as process:
        yield Pool(process)


@contextmanager
def _started() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        python(POOL), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            below = proc.descendants(process.pid)
            for pid in (process.pid, *below):
                subprocess.run(["kill", "-9", str(pid)], check=False, capture_output=True)


def test_workers_that_are_started_between_exact_readings_count(pool: Pool) -> None:
    assert pool.told == pytest.approx(pool.true, rel=0.02)
    pool.does("fork")
    assert pool.told == pytest.approx(pool.true, rel=0.02)
    assert pool.true > 160 * MIB


def test_what_new_workers_share_is_never_part_of_a_peak(pool: Pool) -> None:
    """With no time for an exact reading, nothing is told that may not be true."""
    peak = pool.told
    pool.sampler._allowed = -1000.0
    pool.does("fork")
    assert pool.sampler.bounds().most > 30 * 80 * MIB
    assert pool.told <= peak + MIB
    pool.sampler._allowed = 1.0
    assert pool.told == pytest.approx(pool.true, rel=0.02)
    assert not pool.sampler.unconfirmed, "it was read after all, with the same processes"


def test_workers_that_nobody_could_read_are_told_of(pool: Pool) -> None:
    assert pool.told
    pool.sampler._allowed = -1000.0
    pool.does("fork")
    assert pool.told < 100 * MIB
    pool.does("end")
    pool.sampler.exact_bytes()
    assert pool.sampler.unconfirmed > 160 * MIB


def test_memory_of_its_own_needs_no_exact_reading(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A training that fills a buffer has a new peak with every reading."""
    pool.does("fork")
    before = pool.told
    true = pool.true
    monkeypatch.setattr(proc, "rollup", pytest.fail)
    pool.does("grow")
    assert pool.told - before == pytest.approx(40 * MIB, rel=0.02)
    monkeypatch.undo()
    assert pool.true - true == pytest.approx(40 * MIB, rel=0.02)


def test_who_ends_leaves_to_the_others_what_it_shared(pool: Pool) -> None:
    pool.does("fork")
    assert pool.told
    pool.sampler._allowed = -1000.0
    pool.does("end")
    bounds = pool.sampler.bounds()
    assert bounds.least <= pool.true <= bounds.most + MIB


@pytest.mark.parametrize("workers", [False, True])
def test_new_shared_memory_is_likely_of_a_process_that_is_alone(pool: Pool, workers: bool) -> None:
    """A guard that had to read first would be late; among workers it may be another's."""
    if workers:
        pool.does("fork")
    before = pool.told
    pool.does("share")
    bounds = pool.sampler.bounds()
    assert bounds.least == pytest.approx(before, rel=0.02)
    assert bounds.likely - before == pytest.approx(0 if workers else 40 * MIB, abs=2 * MIB)
    assert bounds.most - before == pytest.approx(40 * MIB, abs=3 * MIB)
    assert pool.told == pytest.approx(pool.true, rel=0.02)


def test_an_exact_reading_more_than_usual_takes_its_part_of_the_time_and_no_more(
    pool: Pool,
) -> None:
    sampler = pool.sampler
    sampler._allowed = sampler._allowed_at = 0.0
    assert sampler._may_read(), "after a quiet time"
    assert sampler._allowed <= sampling._DOUBT_SECONDS
    sampler._allowed = -1.0
    assert not sampler._may_read()
    sampler._allowed_at -= 1.5 * sampling._DOUBT_SHARE
    assert sampler._may_read()


FILLS = """
import mmap, sys
buffer = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
grows = mmap.mmap(-1, 40 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
grows[:] = b"1" * len(grows)
print("ready", flush=True)
for line in sys.stdin:
    if line == "fill\\n":
        buffer[: 8 << 20] = b"1" * (8 << 20)
    if line == "grow\\n":
        grows.resize(72 << 20)
        grows[40 << 20 :] = b"1" * (32 << 20)
    print("done", flush=True)
"""


@pytest.mark.parametrize(("what", "filled"), [("fill", 8), ("grow", 0)])
def test_only_what_was_reserved_before_is_filled(what: str, filled: int) -> None:
    """A block that is made larger has no end that is known, so that its growth may be a leak."""
    process = subprocess.Popen(
        python(FILLS), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        filling = sampling.Filling(process.pid)
        filling.look()
        process.stdin.write(f"{what}\n")
        process.stdin.flush()
        assert process.stdout.readline() == "done\n"
        filling._next = 0.0
        filling.look()
        assert abs(filling.filled - filled * MIB) < MIB
        assert (filling.room > 50 * MIB) == bool(filled)
    finally:
        process.kill()
        process.communicate()
