"""MF004: the minibatch decides the peak.

What: what grows with `batch_size` (activations kept for the backward pass, scratch of the kernels,
the gathered copies) is a quarter of the peak or more.

Why: an update works through the rollout or samples the replay in minibatches. A smaller one needs
less memory and learns from the same samples, but takes smaller and more steps: that changes the
training, so it is a choice and not a repair.

Bad:
    model = PPO("CnnPolicy", env, n_steps=8192, batch_size=2048)

Good:
    model = PPO("CnnPolicy", env, n_steps=8192, batch_size=256)
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.checks._rows import total
from memfit.model import Finding, Fix, Ledger, RunSpec, Severity
from memfit.units import format_bytes

CODE = "MF004"
KNOB = "batch_size"


def find(spec: RunSpec, ledger: Ledger, limit: int) -> Iterator[Finding]:
    peak = ledger.peak
    rows = [c for c in ledger.components if c.alive_in(peak.moment) and KNOB in c.size.knobs]
    grows = total(ledger, rows)
    if 4 * grows < peak.bytes or ledger.knobs.get(KNOB, 0) < 2:
        return
    largest = max(rows, key=ledger.bytes_of)
    yield Finding(
        code=CODE,
        severity=Severity.WARNING if peak.bytes > limit else Severity.INFO,
        message=f"{format_bytes(grows)} of the peak, {grows / peak.bytes:.0%}, grow with "
        f"batch_size {ledger.knobs[KNOB]:,}; the largest part is {largest.name}",
        where="model.batch_size",
    )


def fix(spec: RunSpec, ledger: Ledger) -> Iterator[Fix]:
    half = ledger.knobs[KNOB] // 2
    yield Fix(
        change=f"batch_size={half}: more and smaller steps", ledger=ledger.at(batch_size=half)
    )
