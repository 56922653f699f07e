"""Programs that run while they are explained, and what the kernel says of them meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.truth import kernel

LIVE = Path(__file__).parent / "live"
NAMES = sorted(f.stem for f in LIVE.glob("*.py") if f.stem not in ("__init__", "wait"))


@contextmanager
def running(name: str, *before: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program of this folder, from where it says that it is ready to the end of the block."""
    process = subprocess.Popen(
        [*before, sys.executable, str(LIVE / f"{name}.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        assert process.stdout.readline() == b"ready\n"
        yield process
    finally:
        process.stdin.close()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def tree_pss(pid: int) -> int:
    """The PSS of a process and all below it, as the kernel sums it."""
    return sum(kernel.pss(p) for p in [pid, *kernel.below(pid)])


@contextmanager
def seen_meanwhile(pid: int) -> Iterator[list[int]]:
    """Sums that the kernel gives for a tree before, again and again during, and after the block."""
    seen = [tree_pss(pid)]
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.02):
            with suppress(OSError):  # a process of the tree has just ended
                seen.append(tree_pss(pid))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()
    seen.append(tree_pss(pid))
