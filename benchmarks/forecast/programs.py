"""Programs to record, 150 s each: ``python -m benchmarks.forecast.programs NAME LOG``.

Each writes what its leak, or the buffer that it fills, has added so far, with the time, to LOG.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

MIB = 2**20
SECONDS = 150.0


class Log:
    """Tells how much has grown; nothing where nothing does."""

    def __init__(self, path: str) -> None:
        self._file = Path(path).open("w", encoding="utf-8")  # noqa: SIM115  # to the end
        self._next = 0.0

    def tell(self, amount: int) -> None:
        if time.time() >= self._next:
            self._next = time.time() + 0.2
            self._file.write(f"{time.time():.3f} {amount}\n")
            self._file.flush()


def _busy(count: int) -> None:
    """Threads that keep the interpreter busy."""

    def work() -> None:
        while True:
            sum(range(1000))
            np.ones((200, 200)).dot(np.ones((200, 200)))

    for _ in range(count):
        threading.Thread(target=work, daemon=True).start()


def _until(seconds: float = SECONDS, pause: float = 0.05) -> Any:
    begin = time.monotonic()
    while time.monotonic() - begin < seconds:
        yield time.monotonic() - begin
        time.sleep(pause)


def _torch_update(steps: int = 1) -> None:
    import torch

    net = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 8))
    for _ in range(steps):
        net(torch.ones(2048, 256)).square().mean().backward()


def objects_with_busy_threads(log: Log) -> None:
    """Infos of every step are kept as dicts, beside four busy threads."""
    _torch_update()
    _busy(4)
    kept: list[dict[str, object]] = []
    for seconds in _until():
        while len(kept) < 2000 * seconds:
            kept.append({"step": len(kept), "reward": float(len(kept)), "state": [0] * 40})
        log.tell(len(kept) * 640)


def _worker(leaks: bool, place: str, seconds: float) -> None:
    rng, kept, log = np.random.default_rng(0), [], Log(place) if leaks else None
    own = rng.random((4, MIB))
    for so_far in _until(seconds):
        rng.random((200, 200)).dot(rng.random((200, 200)))
        while log is not None and len(kept) < 10 * so_far:
            kept.append(bytearray(b"1") * (MIB // 10))
            log.tell(len(kept) * MIB // 10)
    del own


def one_worker_of_four(log: Log) -> None:
    """One of four workers keeps what it sends."""
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=_worker, args=(i == 2, sys.argv[2], SECONDS)) for i in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def rollout_that_never_ends(log: Log) -> None:
    """A trajectory that is only cleared when the episode is done, which it never is."""
    _torch_update()
    trajectory: list[np.ndarray[Any, Any]] = []
    for i, seconds in enumerate(_until()):
        while len(trajectory) < 20 * seconds:
            trajectory.append(np.full(12_000, seconds))
        if i % 100 == 99:
            _torch_update(8)
        log.tell(len(trajectory) * 96_000)


def replay_being_filled(log: Log) -> None:
    """A replay buffer of 1 GB that is reserved at once and written step by step."""
    _torch_update()
    replay, filled = np.zeros((250, MIB), dtype=np.float32), 0
    for seconds in _until(pause=0.25):
        while filled < 1.2 * seconds:
            replay[filled] = seconds
            filled += 1
        log.tell(filled * 4 * MIB)


def rollouts_and_updates(log: Log) -> None:
    """Lists of a rollout that are dropped after each update."""
    steps: list[np.ndarray[Any, Any]] = []
    for i, _ in enumerate(_until()):
        steps.append(np.full(60_000, float(i)))
        if i % 120 == 119:
            batch = np.stack(steps)
            _torch_update(20)
            steps.clear()
            del batch


def short_env(log: Log) -> None:
    """An environment that is made, stepped for four seconds and closed."""
    env = [np.full(MIB, float(i)) for i in range(20)]
    for _ in _until(4.0, pause=0.001):
        env[0] = env[1] * 0.5


def workers_one_by_one(log: Log) -> None:
    """Six workers that import torch, each some seconds after the last."""
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_waiting, args=(SECONDS - 5 * i,)) for i in range(6)]
    for worker in workers:
        worker.start()
        time.sleep(5)
    for worker in workers:
        worker.join()


def _waiting(seconds: float) -> None:
    _torch_update(4)
    time.sleep(seconds)


def file_being_read(log: Log) -> None:
    """A file of 400 MB that is mapped and read bit by bit."""
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        for i in range(100):
            file.write(bytes([i]) * (4 * MIB))
        file.flush()
        data = np.memmap(file.name, dtype=np.uint8, mode="r")
        for i, _ in enumerate(_until(pause=0.5)):
            data[4 * MIB * (i % 100) : 4 * MIB * (i % 100 + 1)].sum()


class _TimeUp(Exception):
    """The trader has had its time."""


def trader_never_done(log: Log) -> None:
    """The reference trader as described, 12 threads, in an env that never says done."""
    from memfit.systems.trader.described import Described
    from memfit.systems.trader.market import market_for
    from memfit.systems.trader.settings import DESCRIBED, Settings

    settings = Settings(**{**DESCRIBED, "workers": 0, "width": 256}, never_done=True)
    begin, first = time.monotonic(), 0

    def step() -> None:
        nonlocal first
        first = first or _own_bytes()
        log.tell(max(0, _own_bytes() - first))
        if time.monotonic() - begin > SECONDS:
            raise _TimeUp

    training = Described(settings, market_for(settings), step=step)
    try:
        with suppress(_TimeUp):
            for _ in training.train():
                pass
    finally:
        training.close()


def _own_bytes() -> int:
    """Resident bytes of this process that are no file's."""
    resident, shared = Path("/proc/self/statm").read_text().split()[1:3]
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Program:
    """A program, what it truly is, and what `memfit run` is told beside."""

    truth: str
    run: Callable[[Log], None]
    options: tuple[str, ...] = ()


PROGRAMS = {
    "objects kept beside busy threads": Program("leak", objects_with_busy_threads),
    "objects kept, killed at its limit": Program(
        "leak", objects_with_busy_threads, ("--limit", "300MiB", "--grace", "1s")
    ),
    "one worker of four keeps": Program("leak", one_worker_of_four),
    "rollout that never ends": Program("leak", rollout_that_never_ends),
    "trader that never says done": Program("leak", trader_never_done),
    "replay being filled": Program("filling", replay_being_filled),
    "rollouts and updates": Program("neither", rollouts_and_updates),
    "environment of four seconds": Program("neither", short_env),
    "workers one by one": Program("neither", workers_one_by_one),
    "file being read": Program("neither", file_being_read),
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]].run(Log(sys.argv[2]))
