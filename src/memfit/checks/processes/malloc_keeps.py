"""MF012: malloc keeps memory that nothing uses.

What: a twentieth of the peak or more is malloc's own slack: blocks that were freed and not given
back to the system, and holes between those in use.

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
from memfit.model import Finding, Kind, Ledger, RunSpec, Severity
from memfit.units import format_bytes

CODE = "MF012"
VARIABLES = "MALLOC_ARENA_MAX=2 MALLOC_MMAP_THRESHOLD_=1048576"


def find(spec: RunSpec, ledger: Ledger, limit: int) -> Iterator[Finding]:
    peak = ledger.peak
    kept = [c for c in ledger.components if c.kind is Kind.FRAGMENTATION]
    slack = total(ledger, [c for c in kept if c.alive_in(peak.moment)])
    if slack <= 0 or 20 * slack < peak.bytes:  # as memfit.dropins.settings_for
        return
    yield Finding(
        code=CODE,
        severity=Severity.INFO,
        message=f"{format_bytes(slack)} of the peak, {slack / peak.bytes:.0%}, are kept by malloc; "
        f"it keeps less with {VARIABLES} before the command, or "
        'memfit.dropins.apply_settings(arenas=2, mmap_threshold="1MiB") first of all',
        where="malloc",
        bytes=slack,
    )
