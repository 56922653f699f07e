"""`track()`: record this process, or add phases and steps to the recording that it is under."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from memfit.analyses.forecast import forecast
from memfit.analyses.tree_ledger import tree_ledger
from memfit.measure.children.launch import RECORDING
from memfit.measure.kernel import proc
from memfit.measure.live.process_tree import read_tree
from memfit.measure.record.recorder import Recorder, Tools
from memfit.measure.record.recording import Recording, scratch
from memfit.model import Event, EventKind

_STEP_SECONDS = 0.2  # between two steps that are written


class Tracker:
    """Tells a recording what the training does."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.peak_bytes = 0
        self._recording = Recording(path)
        self._started = self._recording.started()
        self._phase = ""
        self._next_step = 0.0

    def phase(self, name: str) -> None:
        """From here on, the training is in this phase (`rollout`, `update` ...)."""
        if name == self._phase:
            return
        self._phase = name
        self._recording.event(Event(seconds=self.seconds, kind=EventKind.PHASE, text=name))

    def step(self, number: int) -> None:
        """The training has come to this environment step."""
        now = time.monotonic()
        if now >= self._next_step:
            self._recording.about(step=int(number))
            self._next_step = now + _STEP_SECONDS

    def holders(self, sizes: Mapping[str, int]) -> None:
        """What holds how many bytes, by path; added to what was told before."""
        self._recording.told({name: int(size) for name, size in sizes.items()})

    def memory_bytes(self) -> int:
        """What this process and all below it hold now (PSS)."""
        amount = proc.tree_memory(os.getpid()).pss
        self.peak_bytes = max(self.peak_bytes, amount)
        return amount

    @property
    def seconds(self) -> float:
        return round(max(0.0, time.time() - self._started), 3)

    def close(self) -> None:
        """Say no more. The recording goes on where somebody else makes it."""
        self._recording.leave()


@contextmanager
def track(record: Path | str | None = None) -> Iterator[Tracker]:
    """Record this process while the block runs; below `memfit run`, add to its recording.

    With `record`, the recording is kept there. A thread reads the process four times a second.
    """
    under = os.environ.get(RECORDING)
    with ExitStack() as stack:
        if record is None and under and Path(under).exists():
            path = Path(under)
        else:
            path = stack.enter_context(scratch(record))
            stack.enter_context(_recorded(path))
        yield stack.enter_context(closing(Tracker(path)))


@contextmanager
def _recorded(path: Path) -> Iterator[None]:
    """Record this process from a thread of its own."""
    begun, ended = threading.Event(), threading.Event()
    problem: list[BaseException] = []

    def follow() -> None:
        try:
            recording = Recording(path)
            tools = Tools(
                ledger=lambda pid: tree_ledger(read_tree(pid)),
                forecast=forecast,
                say=lambda text: None,
            )
            recorder = Recorder(recording, sys.argv, None, tools)
            recorder.begin(os.getpid())
            recorder.look()
            begun.set()
            while not ended.wait(recorder.look()):
                pass
            recorder.look()
            recorder.end(0)
            recording.close()
        except BaseException as error:  # noqa: BLE001  # told to the caller's thread
            problem.append(error)
        finally:
            begun.set()

    thread = threading.Thread(target=follow, name="memfit-track", daemon=True)
    thread.start()
    begun.wait()
    if problem:
        raise problem[0]
    try:
        yield
    finally:
        ended.set()
        thread.join()
