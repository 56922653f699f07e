"""MF005: the replay stores nearly every observation twice.

What: `next_observations` repeats `observations`, moved by one step. With
`optimize_memory_usage=True` stable-baselines3 stores them once. It refuses that for Dict
observations, n-step returns and HER. `memfit.dropins.WindowReplayBuffer` stores them once for Dict
observations too, with 8 bytes a step that say where they are.

Why: it halves the replay. With `optimize_memory_usage` not for nothing: it cannot be combined with
`handle_timeout_termination`, so episodes that end by a time limit are treated as real ends, and at
each of them the next observation is the first of the following episode (SB3#934).
`WindowReplayBuffer` gives the same samples as before, at time limits too.

Bad:
    model = DQN("CnnPolicy", env, buffer_size=1_000_000)

Good:
    from memfit.dropins import WindowReplayBuffer

    model = DQN("CnnPolicy", env, buffer_size=1_000_000, replay_buffer_class=WindowReplayBuffer)
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.checks._rows import named, without
from memfit.checks._windows import NEXT, REPLAYS, WINDOW_REPLAY, parts, stacked, window_replay
from memfit.model import Changes, Finding, Fix, Ledger, RunSpec, Severity
from memfit.model.changes import REPLAY
from memfit.units import format_bytes

CODE = "MF005"


def find(spec: RunSpec, ledger: Ledger, limit: int) -> Iterator[Finding]:
    names = _names(spec)
    amount = named(ledger, names)
    if not amount or 20 * amount < ledger.peak.bytes:
        return
    yield Finding(
        code=CODE,
        severity=Severity.WARNING if ledger.peak.bytes > limit else Severity.INFO,
        message=f"next_observations repeat the observations: {format_bytes(amount)} that "
        "need not be stored",
        where=", ".join(f"model.{name}" for name in names),
        bytes=amount,
    )


def fix(spec: RunSpec, ledger: Ledger) -> Iterator[Fix]:
    if stacked(spec) < 2:  # with stacked frames MF011 says it
        yield Fix(
            change="replay_buffer_class=memfit.dropins.WindowReplayBuffer: each observation once, "
            "exact at time limits",
            ledger=window_replay(spec, ledger),
            safe=True,
            changes=Changes(parts={REPLAY: WINDOW_REPLAY}),
        )
    if spec.buffer != REPLAYS[0]:
        return
    yield Fix(
        change="optimize_memory_usage=True with handle_timeout_termination=False: time limits then "
        "count as real ends of episodes (SB3#934)",
        ledger=without(ledger, *_names(spec)),
        changes=Changes(
            options={
                "optimize_memory_usage": True,
                "replay_buffer_kwargs": {"handle_timeout_termination": False},
            }
        ),
    )


def _names(spec: RunSpec) -> list[str]:
    return [a.name for a in parts(spec, NEXT)] if spec.buffer in REPLAYS else []
