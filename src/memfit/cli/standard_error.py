"""Standard error for a guest of somebody else's program: a write never waits and never fails."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from queue import SimpleQueue

_MOST_WAITING = 100  # texts; nobody reads, so that the next ones are dropped
_PATIENCE = 1.0  # seconds to wait for a reader at the end


class StandardError:
    """Hands texts to a thread, which may wait for a reader for as long as it takes.

    The stream is shared with the program, so that it cannot be made one that does not block.
    """

    def __init__(self) -> None:
        from memfit.api.run import quiet_thread

        self._texts: SimpleQueue[str | None] = SimpleQueue()
        # Begun now, since a process without memory waits for a new thread for ever. It blocks all
        # signals: a terminal may stop a job in the background that writes to it.
        self._thread = quiet_thread(self._follow, "memfit-says")

    def isatty(self) -> bool:
        """Whether it is a terminal that still answers."""
        return sys.stderr is not None and sys.stderr.isatty()

    def is_ours(self) -> bool:
        """Whether it is a terminal on which this job is the one that is seen.

        In the background, a shell or another program has its prompt there. The same is taken for a
        terminal of another session, which does not tell.
        """
        try:
            return self.isatty() and os.tcgetpgrp(sys.stderr.fileno()) == os.getpgrp()
        except (OSError, ValueError):
            return False

    def write(self, text: str) -> None:
        """Write this as soon as somebody reads."""
        if sys.stderr is not None and self._texts.qsize() < _MOST_WAITING:  # None: it is closed
            self._texts.put(text)

    def close(self) -> None:
        """Wait until all is written, but not for long."""
        self._texts.put(None)
        self._thread.join(_PATIENCE)

    def _follow(self) -> None:
        while (text := self._texts.get()) is not None:
            left = text.encode(sys.stderr.encoding, "backslashreplace")
            with suppress(OSError, ValueError):  # nobody reads any more, or the terminal is gone
                while left:
                    left = left[os.write(sys.stderr.fileno(), left) :]


class Page(io.StringIO):
    """What is to be written there at once, made for the terminal or file that it is."""

    def __init__(self, to: StandardError) -> None:
        super().__init__()
        self._to = to

    def isatty(self) -> bool:
        return self._to.isatty()
