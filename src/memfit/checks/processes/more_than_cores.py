"""MF403: there are more workers than cores.

What: a planned or recorded run has twice as many worker processes as its machine lets it use, or
more.

Why: each worker holds what it imports and its env, and no more than one for each core steps at a
time. Several envs in one worker, or in the main process, cost less and step as often.

Bad:
    from stable_baselines3.common.vec_env import SubprocVecEnv

    env = SubprocVecEnv([make_env] * 64)  # on 8 cores

Good:
    from memfit.dropins import LightVecEnv

    env = LightVecEnv([make_env] * 64, workers=8)
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.checks._machine import cores
from memfit.checks._rows import named
from memfit.model import Finding, Forecast, Ledger, RunSpec, Severity, Trace

CODE = "MF403"
_TIMES = 2


def find(spec: RunSpec, ledger: Ledger, limit: int) -> Iterator[Finding]:
    workers = ledger.knobs.get("n_envs", 0)
    processes = spec.vec_env is not None and bool(spec.vec_env.start_method)
    if not processes or workers < _TIMES * cores() or workers < 4:
        return
    yield Finding(
        code=CODE,
        severity=Severity.INFO,
        message=f"{workers:,} workers share {cores():,} cores of this machine",
        where=spec.vec_env.kind if spec.vec_env is not None else "",
        bytes=named(ledger, ["workers.private"]),
    )


def find_in_recording(trace: Trace, forecast: Forecast) -> Iterator[Finding]:
    """By the cores of the machine on which it was recorded; half of the readings must agree."""
    counts = sorted(reading.processes - 1 for reading in trace.readings)
    workers = counts[len(counts) // 2] if counts else 0
    if not trace.cores or workers < _TIMES * trace.cores or workers < 4:
        return
    yield Finding(
        code=CODE,
        severity=Severity.INFO,
        message=f"{workers:,} processes beside the first one shared {trace.cores:,} cores",
        where="processes",
        fix="several envs in one worker: memfit.dropins.LightVecEnv(..., workers=...)",
    )
