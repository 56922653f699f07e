"""Mappings as the kernel lists them, and how a mapping is cut."""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from memfit.measure.kernel.elf import zeroed_bytes
from memfit.measure.kernel.mappings import Mapping, apart, in_smaps, mappings, nameless, split
from memfit.measure.kernel.proc import PAGE, rollup
from memfit.measure.kernel.process_memory import ProcessMemory, Span


def own_block(pages: int, touched: int) -> tuple[mmap.mmap, int]:
    block = mmap.mmap(-1, pages * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    block.madvise(mmap.MADV_NOHUGEPAGE)
    block[: touched * PAGE] = b"\1" * (touched * PAGE)
    return block, ctypes.addressof(ctypes.c_char.from_buffer(block))


def test_a_block_of_our_own_is_found_with_what_is_filled() -> None:
    block, address = own_block(64, 24)
    found = next(m for m in mappings(os.getpid()) if m.holds(address))
    assert found.nameless and found.writable and not found.forbidden
    end, filled = address + 64 * PAGE, address + 24 * PAGE
    with ProcessMemory(os.getpid()) as memory:
        assert memory.resident(address, end) == 24 * PAGE
        assert list(memory.present(address, end)) == [(address, filled)]
        assert memory.resident(address + 10, address + 20) == 10
    assert len(block) == 64 * PAGE


def test_all_mappings_add_up_to_the_rollup() -> None:
    summed = sum(m.pss for m in mappings(os.getpid()))
    total = rollup(os.getpid())
    assert total is not None
    assert abs(summed - total.pss) <= 0.01 * total.pss


GROWING = """\
import ctypes, sys
libc = ctypes.CDLL(None)
libc.sbrk.restype, libc.sbrk.argtypes = ctypes.c_void_p, [ctypes.c_ssize_t]
print("ready", flush=True)
for line in sys.stdin:
    libc.sbrk(65536)
    print("grown", flush=True)
"""


@contextmanager
def growing() -> Iterator[subprocess.Popen[str]]:
    """A process whose heap grows by a step for each line that it is sent."""
    command = [sys.executable, "-c", GROWING]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()
        yield process
        process.stdin.close()


def test_a_heap_that_grows_while_it_is_listed_counts_once(tmp_path: Path) -> None:
    with growing() as process:
        assert process.stdin is not None and process.stdout is not None
        listed, fd = b"", os.open(f"/proc/{process.pid}/smaps", os.O_RDONLY)
        while some := os.read(fd, 512):
            listed += some
            if b"[heap]" in some and listed.count(b"[heap]") < 4:
                process.stdin.write("\n")
                process.stdin.flush()
                process.stdout.readline()
        os.close(fd)
    (tmp_path / "smaps").write_bytes(listed)
    heaps = [line for line in listed.splitlines() if line.endswith(b"[heap]")]
    assert len(heaps) > 1  # the kernel lists it anew
    (heap,) = (m for m in in_smaps(tmp_path / "smaps") if m.path == "[heap]")
    assert f"{heap.start:x}-{heap.end:x}".encode() in heaps[-1]


def test_private_memory_is_listed_at_once() -> None:
    block, address = own_block(64, 1)
    assert any(a <= address and address + len(block) <= b for a, b in nameless(os.getpid()))


edges = st.lists(st.integers(0, 60), max_size=12, unique=True).map(sorted)
stretches = edges.map(lambda e: list(zip(e[::2], e[1::2], strict=False)))


@given(stretches, stretches)
def test_what_only_one_of_two_has(some: list[Span], others: list[Span]) -> None:
    one, two = ({i for a, b in spans for i in range(a, b)} for spans in (some, others))
    assert apart(some, others) == len(one ^ two)


class Nothing:
    """Memory that the kernel does not show."""

    readable = False


@given(
    st.integers(1, 1000),
    st.lists(st.integers(-100, 1100), max_size=8),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
)
def test_cutting_loses_nothing(pages: int, cuts: list[int], rss: int, pss: int) -> None:
    whole = Mapping(
        start=0, end=pages * PAGE, perms="rw-p", inode=0, path="", rss=rss, pss=pss, private=pss
    )
    parts = split(whole, [cut * PAGE for cut in cuts], Nothing())  # type: ignore[arg-type]
    assert parts[0].start == whole.start and parts[-1].end == whole.end
    assert all(a.end == b.start for a, b in pairwise(parts))
    for name in ("rss", "pss", "private", "reserved"):
        assert sum(getattr(p, name) for p in parts) == getattr(whole, name)


def test_a_file_that_is_no_library_has_no_zeroed_part() -> None:
    assert zeroed_bytes(__file__) == 0
    assert zeroed_bytes("/no/such/file") == 0
