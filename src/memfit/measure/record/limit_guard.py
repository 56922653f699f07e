"""Keeps a tree below a limit: all of it is asked to end, given its time, and then ended."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from memfit.measure.children import keeper
from memfit.measure.children.process_lifetime import end_all, held_still, signal_all
from memfit.measure.record.sampling import Bounds, Sampler
from memfit.model import Ledger

Rows = Callable[[Sequence[int]], Ledger]

_HARD = 1.05  # times the limit: no more grace
_PAUSE = 2  # times what an exact reading took, before the next where bounds are in doubt again
NET = 1.08  # times the limit: the kernel's own net


class LimitGuard:
    """SIGTERM to all at the limit, SIGKILL soon after it or where the run goes on growing."""

    def __init__(self, sampler: Sampler, limit: int, *, grace: float, rows: Rows) -> None:
        self.limit = limit
        self.grace = grace
        self.ledger: Ledger | None = None  # the rows when it was asked to end
        self._sampler = sampler
        self._tree = sampler.tree
        self._rows = rows
        self._asked = 0.0
        self._next_exact = 0.0

    def look(self) -> int:
        """Look at the tree, and act; what it holds where it has just been asked to end, else 0."""
        bounds, over = self._sampler.bounds(), 0
        if not self._asked and self._above(self.limit, bounds):
            over = self._ask_if_over()
            bounds = Bounds.exactly(over)
        if self._asked:
            late = time.monotonic() - self._asked > self.grace
            if late or self._above(_HARD * self.limit, bounds):
                end_all(self._tree.members)
        return over

    def _above(self, amount: float, bounds: Bounds) -> bool:
        """Whether the tree holds more, which is read where its bounds do not tell.

        It runs on meanwhile: who shares memory among workers is no reason to hold them.
        """
        if not bounds.likely <= amount < bounds.most or time.monotonic() < self._next_exact:
            return bounds.likely > amount
        started = time.thread_time()
        exact = self._sampler.exact_bytes()
        self._next_exact = time.monotonic() + _PAUSE * (time.thread_time() - started)
        return exact > amount

    def _ask_if_over(self) -> int:
        """Ask all to end, if they are over the limit indeed; what they hold then, else 0.

        They are held still meanwhile, so that none grows. Nothing is written until they go on:
        whoever waits for a reader would leave them stopped.
        """
        with held_still(self._tree) as members:
            amount = self._sampler.exact_bytes()
            if amount <= self.limit:
                return 0
            self._asked = time.monotonic()
            if self._tree.keeper:  # who ends first must not let the others go
                signal_all([self._tree.keeper], keeper.STAY)
            signal_all(members, signal.SIGTERM)
            with suppress(Exception):  # without rows, it is asked all the same
                self.ledger = self._rows(members)
            self._asked = time.monotonic()  # they can only act on it from now on
            return amount
