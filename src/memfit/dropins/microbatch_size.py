"""How large a micro-batch may be: from a plan, or from what samples of an update take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from memfit.errors import UsageError
from memfit.model import Ledger, Plan
from memfit.units import format_bytes, parse_bytes

# Beside what is asked for, malloc holds up to as much again: blocks that were given back and are
# too small, or lie too badly, for what is asked for next (1.2 to 2.2 times, measured).
SLACK = 2


@dataclass(frozen=True, kw_only=True)
class UpdateBytes:
    """What an update asks for, as a line over the samples of a micro-batch, and what is there.

    `resident` is what the process (and its workers) hold when nothing of an update is alive,
    `to_come` what the first step of the optimizer will add for good.
    """

    resident: int
    to_come: int
    fixed: int
    per_sample: int

    def peak(self, samples: int) -> int:
        """The most that is resident in an update with micro-batches of so many samples."""
        return self.resident + self.to_come + SLACK * (self.fixed + self.per_sample * samples)


def checked_size(size: Any) -> int:
    """A number of samples, or an error that says what to give."""
    if isinstance(size, bool) or not hasattr(size, "__index__") or size < 1:
        raise UsageError(f"micro_batch_size={size!r} is no number of samples: give 1 or more")
    return int(size)


def checked_limit(limit: Any) -> int:
    """A limit in bytes, from an integer or a text such as `2GiB`."""
    amount = parse_bytes(limit) if isinstance(limit, str) else limit
    if isinstance(amount, bool) or not hasattr(amount, "__index__") or amount < 1:
        raise UsageError(
            f"memory_limit={limit!r} is no amount of memory: give bytes, or a text such as '2GiB'"
        )
    return int(amount)


def evenly(batch: int, largest: int) -> int:
    """The size of equal pieces of a batch, none larger than `largest`."""
    pieces = -(-batch // min(batch, largest))
    return -(-batch // pieces)


def largest_fitting(peak: Callable[[int], int], batch: int, limit: int) -> int:
    """The most samples, up to `batch`, whose peak is within the limit; 0 if not even one is."""
    if peak(batch) <= limit:
        return batch
    fits, fails = 0, batch
    while fails - fits > 1:
        middle = (fits + fails) // 2
        fits, fails = (middle, fails) if peak(middle) <= limit else (fits, middle)
    return fits


def micro_batch_for(plan: Plan | Ledger, limit: int | str | None = None) -> int:
    """The micro-batch with which a planned run fits: `MicroBatchPPO(micro_batch_size=...)`.

    A micro-batched run has the ledger of one whose `batch_size` is the micro-batch. Without
    `limit`, the plan's own. The minibatch is divided evenly.
    """
    ledger = plan.ledger if isinstance(plan, Plan) else plan
    if limit is None:
        if not isinstance(plan, Plan):
            raise UsageError("a ledger alone has no limit: give one, such as '2GiB'")
        limit = plan.limit.bytes
    limit = checked_limit(limit)
    batch = ledger.knobs.get("batch_size", 0)
    if batch < 1:
        raise UsageError(
            "this run has no batch_size that could be divided: its knobs are "
            f"{', '.join(sorted(ledger.knobs)) or 'none'}. Plan a run that learns in minibatches"
        )
    found = largest_fitting(lambda m: ledger.at(batch_size=m).peak.bytes, batch, limit)
    if not found:
        least = ledger.at(batch_size=1).peak
        raise UsageError(
            f"with one sample at a time the run still peaks at {format_bytes(least.bytes)} "
            f"({least.moment}), over {format_bytes(limit)}: give a larger limit, or make "
            "something else smaller; the plan's advice says what"
        )
    return evenly(batch, found)
