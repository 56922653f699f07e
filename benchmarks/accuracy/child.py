"""Run a command in a process group of its own and sample the memory of its tree."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.accuracy.procfs import Memory, descendants, high_water, memory, resident

MAIN_EVERY_S = 0.004
WORKERS_EVERY_S = 0.050
FULL_EVERY_S = 0.200
LIMIT_SECONDS = 60.0
LIMIT_BYTES = 8 << 30
# Threads that wait at a barrier sleep instead of spinning. This changes no size, and keeps a run
# from taking many times as long when something else is running on the machine.
CALM = {"OMP_WAIT_POLICY": "PASSIVE"}
_TAIL = 2000
_REST = 4  # times as long as looking takes: a look at 20 GiB takes half a second, and holds it up
_stopping = threading.Event()
_running: set[subprocess.Popen[bytes]] = set()
_COUNTER_ERROR = 256 << 10


@dataclass(frozen=True)
class Run:
    """What became of a command: its exit, its output and the peak of its tree."""

    exit_code: int | None
    stopped: str | None
    seconds: float
    stdout: str
    stderr: str
    peak: Memory
    peak_at_s: float
    tree_at_peak: tuple[Memory, ...]
    processes_max: int
    samples: int
    full_samples: int
    high_water_bytes: int

    def measures(self) -> dict[str, Any]:
        """Return everything but the output, ready for JSON."""
        values = asdict(self)
        del values["stdout"], values["stderr"]
        values["seconds"] = round(self.seconds, 2)
        values["peak_at_s"] = round(self.peak_at_s, 2)
        return values

    def complaint(self) -> str:
        """Say in one line why the run failed."""
        if self.stopped:
            return self.stopped
        lines = [line for line in self.stderr.strip().splitlines() if line.strip()]
        return f"exit code {self.exit_code}: {lines[-1][-200:] if lines else 'no output'}"


def _read(pids: Sequence[int]) -> dict[int, Memory]:
    """Read processes; one that still borrows the memory of the first, after vfork, is left out."""
    found: dict[int, Memory] = {}
    for pid in pids:
        size = memory(pid)
        if size is not None and size != found.get(pids[0]):
            found[pid] = size
    return found


def _total(tree: Mapping[int, Memory]) -> Memory:
    return sum(tree.values(), Memory())


def _size(tree: Mapping[int, Memory]) -> int:
    return _total(tree).pss


class _Sampler:
    """The peak of a tree, whose main process is looked at often and the others at times.

    ``smaps_rollup`` takes milliseconds to read, in which the training waits; the resident size
    is free. The former is therefore read from time to time, and at once when the latter has
    grown past what it was at the peak.
    """

    def __init__(self, pid: int) -> None:
        self.main = pid
        self.workers: list[int] = []
        self.peak = Memory()
        self.peak_at = 0.0
        self.tree_at_peak: dict[int, Memory] = {}
        self.processes_max = 1
        self.samples = 0
        self.full_samples = 0
        self.high_water = 0
        self._tree: dict[int, Memory] = {}
        self._record = 0
        self._next_workers = 0.0
        self._next_full = 0.0

    def sample(self, now: float) -> None:
        """Take one sample."""
        self.samples += 1
        if now >= self._next_workers:
            self._next_workers = now + WORKERS_EVERY_S
            self.high_water = max(self.high_water, high_water(self.main))
            self.workers = descendants(self.main)
            if self.workers or now >= self._next_full:
                self._next_full = now + FULL_EVERY_S
                self._consider(self._read_tree(), now)
        size = resident(self.main)
        if size > self._record + _COUNTER_ERROR:
            self._record = size
            self._consider({**self._tree, **_read([self.main])}, now)

    def _consider(self, tree: dict[int, Memory] | None, now: float) -> None:
        self.full_samples += 1
        if tree is None or self.main not in tree:
            return
        self._tree = tree
        self.processes_max = max(self.processes_max, len(tree))
        if _size(tree) > self.peak.pss:
            self.peak, self.peak_at, self.tree_at_peak = _total(tree), now, tree

    def _read_tree(self) -> dict[int, Memory] | None:
        """Read every process of the tree, or None when one ended while it was read.

        What a process shares with others falls to these when it ends, so sizes from before and
        from after that must never be added up. A possible peak is therefore read twice; where
        both times find the same processes, the smaller sum is free of that error.
        """
        pids = [self.main, *self.workers]
        first = _read(pids)
        if not self.workers or _size(first) <= self.peak.pss:
            return first
        second = _read(pids)
        return min(first, second, key=_size) if first.keys() == second.keys() else None


def run(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    limit_seconds: float = LIMIT_SECONDS,
    every_s: float = MAIN_EVERY_S,
    limit_bytes: int = LIMIT_BYTES,
) -> Run:
    """Run a command in a temporary folder to its end, or to a limit, and measure its tree.

    Looking at a process holds it up: where its time is measured, look at it less often.
    """
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as outputs:
        out, err = Path(outputs, "out"), Path(outputs, "err")
        with out.open("wb") as stdout, err.open("wb") as stderr:
            start = time.monotonic()
            child = subprocess.Popen(
                command,
                cwd=folder,
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
            _running.add(child)
            sampler = _Sampler(child.pid)
            try:
                stopped = _watch(child, sampler, start, limit_seconds, limit_bytes, every_s)
                seconds = time.monotonic() - start
            finally:
                _end(child)
                _running.discard(child)
        if _stopping.is_set():
            raise KeyboardInterrupt
        return Run(
            exit_code=child.returncode,
            stopped=stopped,
            seconds=seconds,
            stdout=out.read_text(errors="replace"),
            stderr=err.read_text(errors="replace")[-_TAIL:],
            peak=sampler.peak,
            peak_at_s=max(0.0, sampler.peak_at - start),
            tree_at_peak=tuple(sampler.tree_at_peak.values()),
            processes_max=sampler.processes_max,
            samples=sampler.samples,
            full_samples=sampler.full_samples,
            high_water_bytes=sampler.high_water,
        )


def _watch(
    child: subprocess.Popen[bytes],
    sampler: _Sampler,
    start: float,
    limit_seconds: float,
    limit_bytes: int,
    every_s: float,
) -> str | None:
    while child.poll() is None:
        now = time.monotonic()
        sampler.sample(now)
        if sampler.peak.pss > limit_bytes:
            return f"stopped above {limit_bytes >> 30} GiB"
        if now - start > limit_seconds:
            return f"stopped after {limit_seconds:.0f} s"
        cost = time.monotonic() - now
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(max(every_s - cost, _REST * cost))
    return None


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the group that was started here, and nothing else."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def stop_all() -> None:
    """Kill every command that is running in this process, whichever thread started it."""
    _stopping.set()
    for child in list(_running):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
