"""Commands under `memfit run` for tests that let something go wrong around them."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memfit.errors import MemfitError
from memfit.measure.kernel import proc
from memfit.measure.kernel.cgroup import memory_group
from memfit.measure.kernel.limits import own_group
from memfit.measure.record.recording_reader import load

SECONDS = 40.0
MIB = 2**20

# Says its PID, waits for a line, and ends in its own way.
WAITS = """
import os, sys
print(os.getpid(), flush=True)
sys.stdin.readline()
raise SystemExit(7)
"""
# The same, but then it grows for as long as it is let: slowly, for a guard on a busy machine.
GROWS = """
import os, sys, time
print(os.getpid(), flush=True)
sys.stdin.readline()
kept = [bytearray(b"1") * (370 << 20)]
while True:
    kept.append(bytearray(b"1" * 2**20))
    time.sleep(0.02)
"""


def python(code: str, *words: str) -> list[str]:
    return [sys.executable, "-c", code, *words]


@contextmanager
def run(
    command: Sequence[str], *options: str, stderr: Any = subprocess.PIPE, **more: Any
) -> Iterator[subprocess.Popen[str]]:
    """`memfit run` of a command; whatever is left of it afterwards is ended."""
    words = [sys.executable, "-m", "memfit", "run", *options, "--", *command]
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, **more
    )
    seen: list[int] = []
    try:
        with process:
            try:
                yield process
                seen += proc.descendants(process.pid)
            finally:
                seen += proc.descendants(process.pid)
                process.kill()
    finally:
        for pid in seen:
            if alive(pid):
                os.kill(pid, 9)


def said_pid(process: subprocess.Popen[str]) -> int:
    """The PID that the command says in its next line."""
    assert process.stdout is not None
    return int(process.stdout.readline())


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def until(true: Callable[[], object], seconds: float = SECONDS) -> bool:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def alive(pid: int) -> bool:
    return state(pid) not in ("", "Z", "X")


def state(pid: int) -> str:
    """The letter that the kernel has for what a process does; nothing where it is gone."""
    words = proc.text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return words[0] if words else ""


def readings(path: Path) -> int:
    try:
        return len(load(path).readings)
    except MemfitError:
        return 0


def groups(memfit: int | str = "*") -> set[Path]:
    """The memory groups that a memfit, or any, has made and not removed."""
    parents = [own_group(version=version) for version in (1, 2)]
    return {path for parent in parents if parent for path in parent.glob(f"memfit-{memfit}-*")}


def groups_permitted() -> bool:
    with memory_group(2**40) as group:
        return group is not None


@contextmanager
def full_pipe() -> Iterator[int]:
    """The end of a pipe into which nothing goes any more, with somebody who does not read."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writer, False)
    with open(reader, "rb"), open(writer, "wb", buffering=0) as end:
        while end.write(b"x" * 4096):
            pass
        os.set_blocking(writer, True)
        yield writer


@contextmanager
def broken_pipe() -> Iterator[int]:
    """The end of a pipe whose reader is gone."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb"):
        yield writer
