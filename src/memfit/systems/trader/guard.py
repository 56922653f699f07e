"""Looks at a training's processes while they run: their peak, and when to end them."""

from __future__ import annotations

import os
import threading
import time

from memfit.systems.trader.processes import Memory, status, tree_memory
from memfit.units import format_bytes

LOOK_SECONDS = 0.05


class Ended(Exception):
    """The training was ended from outside; the message says why."""

    exit_code = 0


class OverLimit(Ended):
    """The training came to hold more than its limit."""

    exit_code = 3


class Guard:
    """Watches this process and all below it, from a thread, until it is closed.

    `check` ends the training where its time is up or its limit is passed: it is called at every
    step of a rollout that might not end, and counts these steps.
    """

    def __init__(self, *, limit: int, max_seconds: float | None) -> None:
        self.limit = limit
        self.started = time.monotonic()
        self.max_seconds = max_seconds
        self.now = tree_memory(os.getpid())
        self.peak = self.now.total
        self.steps = 0
        self._first: Memory | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="guard")
        self._thread.start()

    def _watch(self) -> None:
        while not self._closed.wait(LOOK_SECONDS):
            self._look()

    def _look(self) -> None:
        self.now = tree_memory(os.getpid())
        # The kernel remembers this process's own spikes, however short.
        self.peak = max(self.peak, self.now.total, status("VmHWM"))

    def check(self) -> None:
        """Go on, or raise why not."""
        over = None if self.max_seconds is None else time.monotonic() - self.started
        if over is not None and self.max_seconds is not None and over > self.max_seconds:
            raise Ended(f"ended after {over:.0f} s, as --max-seconds asks{self._growth()}")
        if self.now.total > self.limit:
            raise OverLimit(
                f"ended at {format_bytes(self.now.total)}, over the limit of "
                f"{format_bytes(self.limit)}{self._growth()}"
            )

    def step(self) -> None:
        """One step of a rollout that might not end."""
        self.steps += 1
        if self.steps == 1:
            self._first = tree_memory(os.getpid())
        self.check()

    def new_rollout(self) -> None:
        """Count steps from here."""
        self.steps = 0

    def _growth(self) -> str:
        if self._first is None or self.steps < 2:
            return ""
        grown = tree_memory(os.getpid()).private - self._first.private
        return (
            f"; the rollout had {self.steps:,} steps and grew by {grown / self.steps:,.0f} bytes "
            "a step"
        )

    def close(self) -> None:
        """Stop looking, after a last look."""
        self._look()
        self._closed.set()
        self._thread.join()
