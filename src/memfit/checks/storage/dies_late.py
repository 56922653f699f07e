"""MF002: the run fits when it starts and goes over the limit later.

What: the replay becomes resident while it fills. At the first step the run is below the limit, and
at a step that can be told now it is above.

Why: such a run trains for hours before the kernel ends it, without a traceback. stable-baselines3
compares the replay with the free memory when it is built, and only warns (SB3#37, SB3#2185).

Bad:
    model = DQN("CnnPolicy", env, buffer_size=1_000_000)  # 56 GB, on a machine with 32
    model.learn(10_000_000)

Good:
    model = DQN("CnnPolicy", env, buffer_size=400_000)
    model.learn(10_000_000)
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.model import Finding, Forecast, Growth, Ledger, RunSpec, Severity, Trace
from memfit.units import format_bytes

CODE = "MF002"


def find(spec: RunSpec, ledger: Ledger, limit: int) -> Iterator[Finding]:
    length = ledger.knobs.get(ledger.length, 0)

    def peak(steps: int) -> int:
        return max(ledger.after(steps).values(), default=0)

    if spec.on_policy or not peak(1) <= limit < peak(length):
        return
    step = ledger.first_over(limit)
    yield Finding(
        code=CODE,
        severity=Severity.ERROR,
        message=f"the run starts with {format_bytes(peak(1))} and goes over {format_bytes(limit)} "
        f"at step {step:,} of {length:,}, when it has trained for {step / length:.0%} of its time",
        where="model.replay_buffer",
    )


def find_in_recording(trace: Trace, forecast: Forecast) -> Iterator[Finding]:
    limit, filled = trace.limit, forecast.ends_at_bytes
    if forecast.growth is not Growth.FILLING or limit is None or (filled or 0) <= limit.bytes:
        return
    yield Finding(
        code=CODE,
        severity=Severity.ERROR,
        message=f"what the run fills ends at {format_bytes(filled or 0)}, and the limit is "
        f"{format_bytes(limit.bytes)} ({limit.source})",
        where=f"after {trace.seconds:.0f} s",
        bytes=filled,
        fix="a smaller buffer: memfit plan says which fits",
    )
