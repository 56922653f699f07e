"""Keeps a tree below a limit: all of it is asked to end, given its time, and then ended."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from memfit.measure.children import keeper
from memfit.measure.children.process_lifetime import end_all, hold_still, signal_all
from memfit.measure.record.sampling import Sampler
from memfit.model import Ledger

Rows = Callable[[Sequence[int]], Ledger]

_HARD = 1.05  # times the limit: no more grace
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

    def look(self) -> int:
        """Look at the tree, and act; what it holds where it has just been asked to end, else 0."""
        amount, over = self._sampler.quick_bytes(), 0
        if amount > self.limit and not self._asked:
            amount = over = self._ask_if_over()
        if self._asked:
            late = time.monotonic() - self._asked > self.grace
            if late or amount > _HARD * self.limit:
                end_all(self._tree.members)
        return over

    def _ask_if_over(self) -> int:
        """Ask all to end, if they are over the limit indeed; what they hold then, else 0.

        They are held still meanwhile, so that none grows. Nothing is written until they go on:
        whoever waits for a reader would leave them stopped.
        """
        held: list[int] = []
        try:
            held = hold_still(self._tree.members)
            amount = self._sampler.exact_bytes()
            if amount <= self.limit:
                return 0
            self._asked = time.monotonic()
            if self._tree.keeper:  # who ends first must not let the others go
                signal_all([self._tree.keeper], keeper.STAY)
            signal_all(held, signal.SIGTERM)
            with suppress(Exception):  # without rows, it is asked all the same
                self.ledger = self._rows(held)
            return amount
        finally:
            signal_all(held, signal.SIGCONT)
