"""Where a run goes over its limit: at which environment step, in which phase, and why."""

from __future__ import annotations

from memfit.model import Crossing, Ledger


def crossing(ledger: Ledger, limit_bytes: int) -> Crossing | None:
    """The first step at which the run needs more than the limit, or None if it never does."""
    if ledger.peak.bytes <= limit_bytes:
        return None
    step = min(ledger.first_over(limit_bytes), ledger.knobs.get(ledger.length, 0))
    over = [moment for moment, amount in ledger.after(step).items() if amount > limit_bytes]
    moment = over[0] if over else ledger.peak.moment
    then = ledger.at(**{ledger.length: step}) if ledger.length else ledger
    rows = [c for c in ledger.components if c.alive_in(moment)]
    if step and moment in ledger.after(step - 1):  # it was well before: something grew
        rows = [c for c in rows if ledger.length in c.size.knobs] or rows
    return Crossing(step=step, moment=moment, because=max(rows, key=then.bytes_of).name)
