"""MF004: the minibatch decides the peak.

What: what grows with `batch_size` (activations kept for the backward pass, scratch of the kernels,
the gathered copies) is a quarter of the peak or more.

Why: an update works through the rollout or samples the replay in minibatches. A smaller one needs
less memory and learns from the same samples, but takes smaller and more steps: that changes the
training, so it is a choice and not a repair. `memfit.dropins.MicroBatchPPO` takes the same steps:
each minibatch goes through the network in pieces, whose gradients are added.

Bad:
    model = PPO("CnnPolicy", env, n_steps=8192, batch_size=2048)

Good:
    model = MicroBatchPPO("CnnPolicy", env, n_steps=8192, batch_size=2048, micro_batch_size=256)
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.checks._rows import total
from memfit.model import Changes, Component, Finding, Fix, Ledger, RunSpec, Severity
from memfit.model.changes import ALGORITHM
from memfit.units import format_bytes

CODE = "MF004"
KNOB, PIECES = "batch_size", "micro_batch_size"
FEWEST, WORTH = 16, 50  # samples of a piece, and the share of the peak that halving it must save


def find(spec: RunSpec, ledger: Ledger, limit: int) -> Iterator[Finding]:
    peak, name = ledger.peak, _deciding(ledger)
    rows = [c for c in ledger.components if c.alive_in(peak.moment) and _grows(ledger, c, name)]
    grows = total(ledger, rows)
    if 4 * grows < peak.bytes or ledger.knobs.get(name, 0) < 2:
        return
    largest = max(rows, key=ledger.bytes_of)
    yield Finding(
        code=CODE,
        severity=Severity.WARNING if peak.bytes > limit else Severity.INFO,
        message=f"{format_bytes(grows)} of the peak, {grows / peak.bytes:.0%}, grow with "
        f"{name} {ledger.knobs[name]:,}; the largest part is {largest.name}",
        where=f"model.{name}",
        bytes=grows,
    )


def fix(spec: RunSpec, ledger: Ledger) -> Iterator[Fix]:
    half = ledger.knobs[_deciding(ledger)] // 2
    if _matters(ledger, PIECES):
        yield Fix(
            change=f"{PIECES}={half}: the same gradient, in smaller pieces",
            ledger=ledger.at(micro_batch_size=half),
            to_rounding=True,
            changes=Changes(options={PIECES: half}),
        )
        return
    if spec.algorithm == "PPO" and spec.buffer.endswith("RolloutBuffer"):
        pieces = _pieces(ledger)
        yield Fix(
            change=f"memfit.dropins.MicroBatchPPO(..., {PIECES}={pieces}): the same gradient, "
            "in pieces",
            ledger=ledger.at(batch_size=pieces),
            to_rounding=True,
            costs="an update takes longer the smaller the pieces are",
            estimated=True,  # malloc keeps less of small pieces
            changes=Changes(parts={ALGORITHM: "MicroBatchPPO"}, options={PIECES: pieces}),
        )
    yield Fix(
        change=f"batch_size={half}: more and smaller steps",
        ledger=ledger.at(batch_size=half),
        estimated=True,  # as above
        changes=Changes(knobs={KNOB: half}),
    )


def _pieces(ledger: Ledger) -> int:
    """A size of pieces of which halves would save little more of the update."""
    moment, at = ledger.peak.moment, ledger.knobs[KNOB] // 2
    while at >= 2 * FEWEST:
        larger, smaller = (ledger.at(batch_size=n).moment_bytes[moment] for n in (at, at // 2))
        if WORTH * (larger - smaller) < ledger.peak.bytes:
            break
        at //= 2
    return at


def _deciding(ledger: Ledger) -> str:
    """The knob that says how many samples are worked on at once: the smaller of the two."""
    names = [name for name in (PIECES, KNOB) if _matters(ledger, name)]
    return min(names, key=lambda name: ledger.knobs[name], default=KNOB)


def _grows(ledger: Ledger, row: Component, name: str) -> bool:
    """Whether a row would be smaller with half of it; what malloc keeps may be larger then."""
    half = {**ledger.knobs, name: ledger.knobs.get(name, 0) // 2}
    return name in row.size.knobs and row.size.evaluate(half) < ledger.bytes_of(row)


def _matters(ledger: Ledger, name: str) -> bool:
    return name in ledger.knobs and any(name in c.size.knobs for c in ledger.components)
