"""MF009: a callback comes n_envs times rarer than its number says.

What: `eval_freq` and `save_freq` count calls, and there is one call for a step of all environments.
With `n_envs` of 8, `save_freq=10_000` saves every 80,000 steps (SB3#446, SB3#1474). A frequency
that the script divides where it makes the callback is taken to be meant so.

Why: the checkpoint that was to survive an out-of-memory kill is not there, or a short run ends
before the first one.

Bad:
    CheckpointCallback(save_freq=10_000, save_path="checkpoints")

Good:
    CheckpointCallback(save_freq=max(10_000 // n_envs, 1), save_path="checkpoints")
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.model import Finding, Ledger, RunSpec, Severity

CODE = "MF009"
NAMES = {"evaluate": "eval_freq", "save": "save_freq"}


def find(spec: RunSpec, ledger: Ledger, limit: int) -> Iterator[Finding]:
    envs, length = ledger.knobs.get("n_envs", 1), ledger.knobs.get("total_timesteps")
    told: set[int] = set()
    for callback in spec.callbacks:
        calls = callback.every_steps
        if envs < 2 or calls < 2 or calls in told or callback.divided:
            continue
        told.add(calls)  # the best model is saved by the evaluation that found it
        name, steps = NAMES.get(callback.kind, "frequency"), calls * envs
        never = length is not None and steps > length and not spec.learns_again
        yield Finding(
            code=CODE,
            severity=Severity.WARNING if never else Severity.INFO,
            message=f"{name}={calls} counts calls; with n_envs {envs} that is every {steps:,} steps"
            + (f", which this run of {length:,} never reaches" if never else "")
            + f"; for every {calls:,} steps use {max(calls // envs, 1)}",
            where=f"callback: {callback.kind}",
        )
