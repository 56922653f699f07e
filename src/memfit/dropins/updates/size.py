"""How large a micro-batch may be: from a plan, or from what samples of an update take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from memfit.errors import UsageError
from memfit.model import Ledger, Plan
from memfit.units import MIB, format_bytes, parse_bytes

# What is resident beside what torch asks for, where large blocks go back to the system at once:
# small blocks that lie badly, and scratch of libraries that torch does not see.
SLACK_SHARE, SLACK = 4, 16 * MIB


@dataclass(frozen=True, kw_only=True)
class UpdateBytes:
    """What an update of some samples was seen to ask for, and what is there beside it.

    `resident` is what the process (and its workers) hold when nothing of an update is alive,
    `to_come` what the first step of the optimizer will add for good. `gradients` are those that
    every micro-batch adds to, and a part of `asked`.
    """

    resident: int
    to_come: int
    gradients: int
    samples: int
    asked: int

    def peak(self, samples: int) -> int:
        """The most that is resident in an update with micro-batches of so many samples.

        What is asked for is the largest of several moments, each a fixed part, with all gradients
        in it, and a part for each sample: more samples take at most as much more in proportion.
        """
        more = (self.asked - self.gradients) * max(samples, self.samples)
        asked = self.gradients + -(-more // self.samples)
        return self.resident + self.to_come + with_slack(asked)


def with_slack(asked: int) -> int:
    """What is resident at most for so many bytes that were asked for."""
    return asked + asked // SLACK_SHARE + SLACK


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
