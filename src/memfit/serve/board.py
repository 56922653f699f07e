"""The latest of each run: one reader writes it, and every viewer looks at it when it can.

A viewer that is slow finds a newer frame the next time, so that nothing is queued for anybody.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from memfit.errors import MemfitError, one_line
from memfit.model import Frame

_LEAVES = 1.0  # seconds that a reader is given to end


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A run as it was read last; `failure` says why it cannot be read any more."""

    revision: int
    frame: Frame | None = None
    failure: str = ""

    @property
    def over(self) -> bool:
        """Whether nothing new will come."""
        return bool(self.failure) or (self.frame is not None and self.frame.ended)


class Board:
    """Runs by their names, each read by one thread for all viewers."""

    def __init__(self, runs: Mapping[str, Callable[[], Frame]], seconds: float) -> None:
        self.latest = {name: Shown(revision=0) for name in runs}
        self.changed: Callable[[], None] = lambda: None  # told in the thread that reads
        self._seconds = seconds
        self._left = threading.Event()
        self._readers = [
            threading.Thread(target=self._read, args=run, name="memfit-watch", daemon=True)
            for run in runs.items()
        ]

    def start(self) -> None:
        """Begin to read."""
        for reader in self._readers:
            reader.start()

    def leave(self) -> None:
        """Read no more. A reader that takes long is left behind: it ends with the process."""
        self._left.set()
        for reader in self._readers:
            if reader.is_alive():
                reader.join(_LEAVES / len(self._readers))

    def _read(self, name: str, next_frame: Callable[[], Frame]) -> None:
        while not self._left.is_set() and not self.latest[name].over:
            before = self.latest[name]
            frame, failure = before.frame, ""
            try:
                frame = next_frame()
            except MemfitError as error:  # a recording that is gone
                failure = str(error)
            except Exception as error:  # noqa: BLE001  # viewers are told, instead of waiting
                failure = one_line(error)
            shown = Shown(revision=before.revision + 1, frame=frame, failure=failure)
            self.latest[name] = shown
            with suppress(RuntimeError):  # the server has ended
                self.changed()
            self._left.wait(self._seconds)
