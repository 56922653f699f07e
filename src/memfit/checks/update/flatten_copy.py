"""MF003: flattening the rollout copies it, and that is the peak.

What: with more than one environment, the first minibatch of an update flattens the rollout from
(n_steps, n_envs) to one row of samples. Each array is copied whole while the old one is alive, so
the largest array, the observations, is there twice. With one environment there is nothing to copy,
and `memfit.dropins.WindowRolloutBuffer` gives the same minibatches without a copy of observations.

Why: the copy lasts for milliseconds, does not show in any average, and decides what fits.

Bad:
    model = PPO("CnnPolicy", make_vec_env(make_env, n_envs=8), n_steps=8192)

Good:
    env = make_vec_env(make_env, n_envs=8)
    model = PPO("CnnPolicy", env, n_steps=8192, rollout_buffer_class=WindowRolloutBuffer)
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.checks._rows import row
from memfit.checks._windows import (
    FLATTEN_COPY,
    ROLLOUT_COSTS,
    ROLLOUTS,
    WINDOW_ROLLOUT,
    stacked,
    window_rollout,
)
from memfit.model import Changes, Finding, Fix, Ledger, RunSpec, Severity
from memfit.model.changes import ROLLOUT
from memfit.units import format_bytes

CODE = "MF003"


def find(spec: RunSpec, ledger: Ledger, limit: int) -> Iterator[Finding]:
    if spec.windows:  # no observations are copied then
        return
    copy = row(ledger, FLATTEN_COPY)
    if copy is None or not ledger.bytes_of(copy) or not copy.alive_in(ledger.peak.moment):
        return
    amount = format_bytes(ledger.bytes_of(copy))
    yield Finding(
        code=CODE,
        severity=Severity.WARNING,
        message=f"the peak comes when the rollout is flattened: {amount} of observations are there "
        "twice for a moment, because n_envs is above 1",
        where="model.rollout_buffer.swap_and_flatten",
        bytes=ledger.bytes_of(copy),
    )


def fix(spec: RunSpec, ledger: Ledger) -> Iterator[Fix]:
    if spec.buffer in ROLLOUTS and stacked(spec) < 2:  # with stacked frames MF011 says it
        yield Fix(
            change="rollout_buffer_class=memfit.dropins.WindowRolloutBuffer: the same minibatches "
            "without the copy",
            ledger=window_rollout(spec, ledger),
            safe=True,
            costs=ROLLOUT_COSTS,
            changes=Changes(parts={ROLLOUT: WINDOW_ROLLOUT}),
        )
    steps = ledger.knobs.get("n_steps", 1) // 2
    if steps:
        yield Fix(
            change=f"n_steps={steps}: half the rollout, so that updates come twice as often",
            ledger=ledger.at(n_steps=steps),
            estimated=True,  # what malloc keeps is that of the longer rollout
            changes=Changes(knobs={"n_steps": steps}),
        )
