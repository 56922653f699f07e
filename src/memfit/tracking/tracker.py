"""`track()`: record this process, or add phases and steps to the recording that it is under."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from memfit.analyses.forecast import forecast, verdict
from memfit.analyses.tree_ledger import tree_ledger
from memfit.errors import UsageError
from memfit.measure.children.launch import RECORDING
from memfit.measure.kernel import proc
from memfit.measure.kernel.quiet_thread import quiet_thread
from memfit.measure.live.process_tree import read_processes
from memfit.measure.record.recorder import Recorder, Tools
from memfit.measure.record.recording import LATEST, WHOLE, Recording, scratch
from memfit.measure.record.recording_thread import RecordingThread
from memfit.model import Event, EventKind

_STEP_SECONDS = 0.2  # between two steps that are written
_ENDING_SECONDS = 10.0  # for the last reading
_LOG = logging.getLogger("memfit")


class Tracker:
    """Tells a recording what the training does. Telling never waits and never raises."""

    def __init__(self, recording: RecordingThread) -> None:
        self.path = recording.path
        self.peak_bytes = 0
        self._recording = recording
        self._phase = ""
        self._next_step = 0.0
        self._trouble = False
        # From here on by a clock that nobody sets; the recording began by another process's.
        elapsed = min(max(0.0, time.time() - recording.started), LATEST / 2)
        self._began = time.monotonic() - (elapsed if recording.started else 0.0)

    def phase(self, name: str) -> None:
        """From here on, the training is in this phase (`rollout`, `update` ...)."""
        with self.telling():
            text = str(name)
            if text == self._phase:
                return
            self._phase = text
            event = Event(seconds=self.seconds, kind=EventKind.PHASE, text=text)
            self._recording.tell(lambda recording: recording.event(event))

    def step(self, number: int) -> None:
        """The training has come to this environment step."""
        now = time.monotonic()
        if now < self._next_step:
            return
        self._next_step = now + _STEP_SECONDS
        with self.telling():
            told = int(number)
            if not -WHOLE <= told < WHOLE:
                raise ValueError("no step has such a number")
            self._recording.tell(lambda recording: recording.about(step=told))

    def holders(self, sizes: Mapping[str, int] | Callable[[], Mapping[str, int]]) -> None:
        """What holds how many bytes, by path; added to what was told before."""
        with self.telling():
            given = sizes() if callable(sizes) else sizes
            found = {str(name): int(size) for name, size in given.items()}
            self._recording.tell(lambda recording: recording.told(found))

    def memory_bytes(self) -> int:
        """What this process and all below it hold now (PSS)."""
        amount = proc.tree_memory(os.getpid()).pss
        self.peak_bytes = max(self.peak_bytes, amount)
        return amount

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Whatever fails in this block is said once, and the training goes on."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  # a training is worth more than its story
            if not self._trouble:
                self._trouble = True
                _LOG.warning("something of the training could not be told: %r", error)

    @property
    def seconds(self) -> float:
        return round(time.monotonic() - self._began, 3)


@contextmanager
def track(record: Path | str | None = None) -> Iterator[Tracker]:
    """Record this process while the block runs; below `memfit run`, add to its recording.

    With `record`, the recording is kept there. A thread reads the process four times a second. A
    place that is taken or has no folder raises UsageError here, before the block; later, and inside
    it, nothing does: where the recording cannot go on, that is logged once and the block goes on.
    """
    under = os.environ.get(RECORDING)
    with ExitStack() as stack:
        if record is None and under and os.path.exists(under):  # noqa: PTH110  # never raises
            recording = _opened(Path(under))
            stack.callback(recording.close, Recording.leave)
        else:
            recording = _own(record, stack)
            stack.callback(recording.close)
            if not recording.failed:
                stack.enter_context(_recorded(recording))
        yield Tracker(recording)


def _own(record: Path | str | None, stack: ExitStack) -> RecordingThread:
    try:
        return _opened(stack.enter_context(scratch(record)))
    except UsageError as error:
        if record is not None:
            raise
        return _opened(Path(), failed=str(error))


def _opened(path: Path, *, failed: str = "") -> RecordingThread:
    recording = RecordingThread(path, _LOG.warning, failed=failed)
    if recording.failed:
        _LOG.warning("nothing is recorded: %s", recording.failed)
    return recording


@contextmanager
def _recorded(recording: RecordingThread) -> Iterator[None]:
    """Record this process from a thread of its own."""
    begun, ended = threading.Event(), threading.Event()
    tools = Tools(
        ledger=lambda pids: tree_ledger(read_processes(pids)),
        forecast=forecast,
        verdict=verdict,
        say=_LOG.warning,
    )
    recorder = Recorder(recording, sys.argv, None, tools)
    recorder.begin(proc.Tree(main=os.getpid()))

    def follow() -> None:
        recorder.look()
        begun.set()
        while not ended.wait(recorder.look()):
            pass
        recorder.look()
        recorder.end(0)

    thread = None
    try:
        thread = quiet_thread(follow, "memfit-track")
        begun.wait()
    except RuntimeError as error:  # no thread more for this process
        _LOG.warning("nothing is recorded: %s", error)
    try:
        yield
    finally:
        ended.set()
        if thread is not None:
            thread.join(_ENDING_SECONDS)
