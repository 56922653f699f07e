"""MF012: malloc keeps memory that nothing uses.

What: a twentieth of the peak or more is malloc's own slack: blocks that were freed and not given
back to the system, and holes between those in use. It is told where the run takes more than half of
its limit: elsewhere the time that the change costs is worth more.

Why: malloc keeps freed blocks of up to 32 MiB for later, and each thread may have a heap of its
own. With two heaps, and blocks of 1 MiB or more given back as soon as they are free, it keeps less;
the numbers of the training stay the same, and updates may take a fifth more time. How much less it
keeps cannot be told before the run.

Bad:
    from stable_baselines3 import PPO

Good:
    from memfit.dropins import apply_settings

    apply_settings(arenas=2, mmap_threshold="1MiB")

    from stable_baselines3 import PPO
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.checks._rows import total
from memfit.model import Finding, Forecast, Kind, Ledger, RunSpec, Severity, Trace
from memfit.units import format_bytes

CODE = "MF012"
VARIABLES = "MALLOC_ARENA_MAX=2 MALLOC_MMAP_THRESHOLD_=1048576"


def find(spec: RunSpec, ledger: Ledger, limit: int) -> Iterator[Finding]:
    kept = [c for c in ledger.components if c.kind is Kind.FRAGMENTATION]
    slack = total(ledger, [c for c in kept if c.alive_in(ledger.peak.moment)])
    yield from found(slack, ledger.peak.bytes, limit)


def find_in_recording(trace: Trace, forecast: Forecast) -> Iterator[Finding]:
    ledger, limit, peak = trace.peak_ledger, trace.limit, trace.peak
    if ledger is not None and limit is not None and peak is not None:
        kept = [c for c in ledger.components if c.kind is Kind.FRAGMENTATION]
        yield from found(total(ledger, kept), peak.bytes, limit.bytes)


def found(slack: int, peak: int, limit: int) -> Iterator[Finding]:
    if slack <= 0 or 20 * slack < peak:  # as memfit.dropins.settings_for
        return
    if 2 * peak < limit:
        return
    yield Finding(
        code=CODE,
        severity=Severity.INFO,
        message=f"{format_bytes(slack)} of the peak, {slack / peak:.0%}, are kept by malloc; "
        f"it keeps less with {VARIABLES} before the command, or "
        'memfit.dropins.apply_settings(arenas=2, mmap_threshold="1MiB") first of all',
        where="malloc",
        bytes=slack,
    )
