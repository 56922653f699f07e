"""Notices processes that a script starts and waits for, which may train in its place.

So do the workers of A3C: they update one network in shared memory, and the script itself only waits
until they end.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any, Protocol

from memfit.model.training import ModuleHook


class Heard(Protocol):
    """Who is told: it hears of the process `pid` alone."""

    pid: int

    def started_process(self) -> None:
        """Processes were started, and the script asks for what they give."""

    def waits_for(self, running: Callable[[], bool]) -> None:
        """The script waits for one, which is still `running`."""


class ProcessCalls:
    """What is put on the modules that start processes."""

    def __init__(self, heard: Heard) -> None:
        self.heard = heard
        self.started = False

    def hooks(self) -> dict[str, ModuleHook]:
        """By module, what to change in it."""
        return {
            "multiprocessing.process": lambda module: self._watch(module.BaseProcess),
            "multiprocessing.queues": self._watch_queues,
            "torch.multiprocessing.spawn": self._watch_spawned,
        }

    def _watch(self, cls: Any) -> None:
        start, join = cls.start, cls.join

        @functools.wraps(start)
        def starting(process: Any) -> None:
            start(process)  # of several: nothing is to run beside while they are forked
            self.started = self.started or not process.daemon

        @functools.wraps(join)
        def joining(process: Any, timeout: float | None = None) -> None:
            if os.getpid() == self.heard.pid and timeout is None:
                self.heard.waits_for(lambda: _runs(process.pid))
            join(process, timeout)

        cls.start, cls.join = starting, joining

    def _watch_queues(self, module: ModuleType) -> None:
        for cls in (module.Queue, module.SimpleQueue):
            get = cls.get

            @functools.wraps(get)
            def getting(queue: Any, *args: Any, get: Any = get, **kwargs: Any) -> Any:
                if self.started and os.getpid() == self.heard.pid:
                    self.started = False  # once will do
                    self.heard.started_process()
                return get(queue, *args, **kwargs)

            cls.get = getting

    def _watch_spawned(self, module: ModuleType) -> None:
        cls: Any = getattr(module, "ProcessContext", None)
        if cls is None:
            return
        join = cls.join

        @functools.wraps(join)
        def joining(context: Any, timeout: float | None = None, *args: Any, **kwargs: Any) -> Any:
            if os.getpid() == self.heard.pid and timeout is None:
                self.heard.waits_for(lambda: any(_runs(one.pid) for one in context.processes))
            return join(context, timeout, *args, **kwargs)

        cls.join = joining


def _runs(pid: int | None) -> bool:
    """Whether a child process has not ended; that it has is left for the script to see."""
    try:
        return os.waitid(os.P_PID, pid or 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except OSError:
        return False
