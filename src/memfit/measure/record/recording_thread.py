"""A recording written by a thread of its own: who tells it something never waits and never fails.

A disk that is full or slow, a file that another program has locked or removed: the recording ends
there, which is said once, and everything else goes on.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

from memfit.measure.kernel.quiet_thread import quiet_thread
from memfit.measure.record.recording import PATIENCE, Recording

Work = Callable[[Recording], object]
_MOST_WAITING = 5_000  # pieces of work: about 20 minutes of readings


class RecordingThread:
    """Keeps what it is told in a recording, for as long as that can be done."""

    def __init__(self, path: Path, say: Callable[[str], None], *, failed: str = "") -> None:
        """Open it and wait until that is done; `failed` says why it could not be, or cannot."""
        self.path = path
        self.failed = failed  # why nothing is kept any more
        self.started = 0.0
        self.step: int | None = None  # what the run itself told last
        self._say = say
        self._pid = os.getpid()
        self._work: SimpleQueue[Work | None] = SimpleQueue()
        self._opened = threading.Event()
        self._thread: threading.Thread | None = None
        if failed:
            return
        try:
            self._thread = quiet_thread(self._write, "memfit-recording")
            self._opened.wait()
        except RuntimeError as error:  # no thread more for this process
            self.failed = f"cannot record into {path}: {error}. Give it more room"

    def tell(self, work: Work) -> None:
        """Have this done with the recording, soon."""
        if self.failed or os.getpid() != self._pid:  # a fork has no such thread
            return
        if self._work.qsize() > _MOST_WAITING:
            self._fail("the disk does not keep up")
        else:
            self._work.put(work)

    def close(self, last: Work = Recording.close) -> None:
        """Do what is left to do, and `last`; no longer than patience lasts."""
        self.tell(last)
        self._work.put(None)
        if self._thread is None:
            return
        self._thread.join(PATIENCE + 1)
        if self._thread.is_alive():
            self._fail("its disk does not answer")

    def _write(self) -> None:
        recording = None
        try:
            recording = Recording(self.path)
            self.started = recording.started()
            self._opened.set()
            while (work := self._work.get()) is not None and not self.failed:
                if not recording.intact:
                    recording.abandon()
                    recording = None
                    raise OSError("the program has closed its files")
                work(recording)
        except Exception as error:  # noqa: BLE001  # whatever it is, the training goes on
            self._fail(str(error))
        finally:
            self._opened.set()
            if recording is not None:
                with suppress(sqlite3.Error):
                    recording.leave()

    def _fail(self, reason: str) -> None:
        if self.failed:
            return
        self.failed = reason
        if self._opened.is_set():  # else whoever opens it is told
            with suppress(Exception):
                self._say(f"recording into {self.path} has ended ({reason}); the command goes on")
