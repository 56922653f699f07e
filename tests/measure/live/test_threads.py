"""Threads with their stacks and pools, on mappings of known content and in a live process."""

from __future__ import annotations

import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from memfit.measure.kernel import proc
from memfit.measure.kernel.mappings import Mapping, mappings
from memfit.measure.kernel.proc import PAGE
from memfit.measure.kernel.process_memory import ProcessMemory
from memfit.measure.live import threads as reading
from memfit.measure.live.threads import threads

MIB = 2**20
BASE = 0x7F00_0000_0000
LIBRARY = 0x7E00_0000_0000


def mapping(start: int, size: int, perms: str = "rw-p", path: str = "") -> Mapping:
    return Mapping(start=start, end=start + size, perms=perms, inode=0, path=path)


def stack_of(pointer: int, *maps: Mapping, size: int = 8 * MIB) -> tuple[int, int] | None:
    return reading._stack(maps, [m.start for m in maps], pointer, size)


GUARD = mapping(BASE - PAGE, PAGE, "---p")


def test_a_stack_is_the_mapping_that_holds_the_stack_pointer() -> None:
    stack, other = mapping(BASE, 8 * MIB), mapping(BASE + 9 * MIB, MIB)
    assert stack_of(BASE + 8 * MIB - 100, GUARD, stack, other) == (BASE, BASE + 8 * MIB)
    assert stack_of(BASE + 8 * MIB + 100, GUARD, stack, other) is None
    assert stack_of(BASE - 2 * PAGE, GUARD, stack, other) is None
    assert stack_of(BASE + 10, mapping(BASE, MIB, path="/lib/libc.so")) is None
    assert stack_of(BASE + 10, mapping(BASE, MIB)) == (BASE, BASE + MIB)


@pytest.mark.parametrize(
    ("size", "wanted"), [(2 * MIB, 8 * MIB), (8 * MIB, 8 * MIB), (16 * MIB, 16 * MIB)]
)
def test_what_became_one_mapping_with_a_stack_is_no_part_of_it(size: int, wanted: int) -> None:
    merged = mapping(BASE, 40 * MIB)
    assert stack_of(BASE + MIB, GUARD, merged, size=size) == (BASE, BASE + wanted)


def test_a_stack_may_be_larger_than_usual() -> None:
    large = mapping(BASE, 64 * MIB)
    assert stack_of(BASE + 64 * MIB - 100, GUARD, large) == (BASE, BASE + 64 * MIB)


def test_stacks_are_found_above_their_guards() -> None:
    maps = [
        mapping(BASE - PAGE, PAGE, "---p"),
        mapping(BASE, 8 * MIB),  # a stack
        mapping(BASE + 20 * MIB, PAGE, "---p"),
        mapping(BASE + 20 * MIB + PAGE, 4 * MIB),  # too small for one
        mapping(BASE + 40 * MIB, 16 * MIB, "---p"),  # too large for a guard
        mapping(BASE + 56 * MIB, 8 * MIB),
        mapping(BASE + 80 * MIB, PAGE, "---p"),
        mapping(BASE + 80 * MIB + PAGE, 30 * MIB),  # a stack, and what lies above it
        mapping(BASE + 120 * MIB, PAGE, "---p"),
        mapping(BASE + 120 * MIB + PAGE, 8 * MIB, "r--p"),  # nothing can be written there
    ]
    second = BASE + 80 * MIB + PAGE
    assert reading._guarded(maps, 8 * MIB) == [(BASE, BASE + 8 * MIB), (second, second + 8 * MIB)]


def test_a_thread_that_runs_gets_one_of_the_stacks_left_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stacks = [BASE + i * 20 * MIB for i in range(2)]
    maps = [m for a in stacks for m in (mapping(a - PAGE, PAGE, "---p"), mapping(a, 8 * MIB))]
    waiting = {2: stacks[1] + MIB}  # the others run
    monkeypatch.setattr(proc, "thread_ids", lambda pid: [1, 2, 3, 4])
    monkeypatch.setattr(reading, "_stack_pointer", lambda pid, tid: waiting.get(tid))
    monkeypatch.setattr(reading, "_pool_by_stack", lambda *_: "")
    found = threads(1, maps, Words())  # type: ignore[arg-type]
    first, second = ((a, a + 8 * MIB) for a in stacks)
    assert [thread.stack for thread in found] == [None, second, first, None]


@pytest.mark.parametrize(
    ("name", "pool"),
    [
        ("pt_autograd_0", "torch"),
        ("pt_main_thread", "torch"),
        ("cuda-EvtHandlr", "CUDA"),
        ("python", ""),
    ],
)
def test_some_threads_have_telling_names(name: str, pool: str) -> None:
    assert reading._pool_by_name(name) == pool


class Words:
    """The first pages of a stack, with these words in them."""

    def __init__(self, *words: int) -> None:
        self.data = struct.pack(f"<{len(words)}Q", *words).ljust(PAGE, b"\0")
        self.there = True

    def present(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        assert end - start == 16 * 1024
        if self.there:
            yield end - PAGE, end

    def read(self, address: int, size: int) -> bytes:
        assert (address, size) == (BASE + 8 * MIB - PAGE, PAGE)
        return self.data


NAMES = ("libgomp.so.1", "libtorch_cpu.so", "libpython3.so", "libscipy_openblas.so", "libc.so.6")
CODE = [mapping(LIBRARY + i * MIB, MIB, "r-xp", f"/lib/{name}") for i, name in enumerate(NAMES)]
GOMP, TORCH, PYTHON, BLAS, C = (m.start + 0x123 for m in CODE)


@pytest.mark.parametrize(
    ("words", "pool"),
    [
        ([C, GOMP, PYTHON], "OpenMP"),
        ([C, BLAS], "BLAS"),
        ([C, TORCH], "torch"),
        ([C, PYTHON, PYTHON], "Python"),
        ([TORCH, PYTHON, PYTHON], "torch"),
        ([TORCH, *[PYTHON] * 5], "Python"),  # a word or two may lead anywhere by chance
        ([C, 17, BASE + 5], ""),
        ([], ""),
    ],
)
def test_the_first_words_on_a_stack_lead_to_who_started_it(words: Sequence[int], pool: str) -> None:
    maps = [*CODE, GUARD, mapping(BASE, 8 * MIB)]
    there = Words(*words)
    stack, starts = (BASE, BASE + 8 * MIB), [m.start for m in maps]
    assert reading._pool_by_stack(stack, maps, starts, there) == pool  # type: ignore[arg-type]
    there.there = False  # to read a page that is not there would make it
    assert reading._pool_by_stack(stack, maps, starts, there) == ""  # type: ignore[arg-type]


def test_data_of_a_library_are_no_calls_of_it() -> None:
    data = mapping(LIBRARY, MIB, "rw-p", "/lib/libgomp.so.1")
    maps, there = [data, mapping(BASE, 8 * MIB)], Words(LIBRARY + 8)
    starts = [m.start for m in maps]
    found = reading._pool_by_stack((BASE, BASE + 8 * MIB), maps, starts, there)  # type: ignore[arg-type]
    assert found == ""


THREE = """
import sys, threading
threading.stack_size({stack})
waiting = threading.Barrier(4)
for _ in range(3):
    threading.Thread(target=lambda: (waiting.wait(), sys.stdin.read()), daemon=True).start()
waiting.wait()
print("ready", flush=True)
threading.Event().wait()
"""


def until_all_wait(pid: int) -> None:
    """A thread that runs shows no stack pointer; on a busy machine it runs for a while."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        calls = [(task / "syscall").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
        if len(calls) == 4 and not any(call.startswith("running") for call in calls):
            return
        time.sleep(0.01)
    raise TimeoutError("a thread does not come to rest")


@contextmanager
def three_threads(stack: int) -> Iterator[int]:
    command = [sys.executable, "-c", THREE.format(stack=stack)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        try:
            until_all_wait(process.pid)
            yield process.pid
        finally:
            process.kill()


@pytest.mark.parametrize("stack", [8 * MIB, 16 * MIB])
def test_threads_of_a_process_have_stacks_of_their_own(stack: int) -> None:
    with three_threads(stack) as pid, ProcessMemory(pid) as memory:
        main, *others = threads(pid, mappings(pid), memory)
    assert (main.tid, main.pool, main.stack) == (pid, "main", None)
    assert [thread.pool for thread in others] == ["Python"] * 3
    stacks = sorted(thread.stack for thread in others if thread.stack)
    assert len(stacks) == 3
    assert all(stack - PAGE <= high - low <= stack for low, high in stacks)
    assert all(first[1] <= second[0] for first, second in pairwise(stacks))


def test_a_process_that_is_gone_has_no_threads() -> None:
    with three_threads(8 * MIB) as pid:
        memory = ProcessMemory(pid)
    with memory:
        assert threads(pid, [], memory) == []
