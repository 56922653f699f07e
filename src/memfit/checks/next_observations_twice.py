"""MF005: the replay stores nearly every observation twice.

What: `next_observations` repeats `observations`, moved by one step. With
`optimize_memory_usage=True` stable-baselines3 stores them once. It refuses that for Dict
observations, n-step returns and HER.

Why: it halves the replay, but not for nothing. It cannot be combined with
`handle_timeout_termination`, so episodes that end by a time limit are treated as real ends, and at
each of them the next observation is the first of the following episode (SB3#934).

Bad:
    model = DQN("CnnPolicy", env, buffer_size=1_000_000)

Good:
    model = DQN(
        "CnnPolicy",
        env,
        buffer_size=1_000_000,
        optimize_memory_usage=True,
        replay_buffer_kwargs={"handle_timeout_termination": False},
    )
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.checks._rows import row, without
from memfit.model import Finding, Fix, Ledger, RunSpec, Severity
from memfit.units import format_bytes

CODE = "MF005"
ROW = "replay_buffer.next_observations"


def find(spec: RunSpec, ledger: Ledger, limit: int) -> Iterator[Finding]:
    twice = row(ledger, ROW)
    if spec.buffer != "ReplayBuffer" or twice is None:
        return
    amount = ledger.bytes_of(twice)
    if 20 * amount < ledger.peak.bytes:
        return
    yield Finding(
        code=CODE,
        severity=Severity.WARNING if ledger.peak.bytes > limit else Severity.INFO,
        message=f"next_observations repeat the observations: {format_bytes(amount)} that "
        "optimize_memory_usage saves, if episodes need no special treatment at their time limit",
        where=f"model.{ROW}",
    )


def fix(spec: RunSpec, ledger: Ledger) -> Iterator[Fix]:
    yield Fix(
        change="optimize_memory_usage=True with handle_timeout_termination=False: time limits then "
        "count as real ends of episodes (SB3#934)",
        ledger=without(ledger, ROW),
    )
