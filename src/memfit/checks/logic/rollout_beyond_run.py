"""MF302: one rollout is longer than the run.

What: `n_steps * n_envs` is above `total_timesteps`.

Why: the first rollout is collected whole before anything else is looked at: the run takes more
steps than it was given, learns once, and needs the memory of the whole rollout.

Bad:
    from stable_baselines3 import PPO

    model = PPO("MlpPolicy", "CartPole-v1", n_steps=8192)
    model.learn(total_timesteps=5_000)

Good:
    from stable_baselines3 import PPO

    model = PPO("MlpPolicy", "CartPole-v1", n_steps=1024)
    model.learn(total_timesteps=5_000)
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.checks._sb3 import models
from memfit.checks.spot import Spot
from memfit.model import Finding, Ledger, RunSpec, Severity
from memfit.syntax import Source

CODE = "MF302"
SEVERITY = Severity.WARNING


def find_in_source(source: Source) -> Iterator[Spot]:
    for model in models(source):
        total, rollout = model.total, model.rollout
        if model.on_policy and total is not None and rollout is not None and 1 < total < rollout:
            yield Spot(
                next(model.learns()), _message(rollout, total), f"n_steps={_fitting(model, total)}"
            )


def _fitting(model: object, total: int) -> str:
    envs = getattr(model, "n_envs", 1) or 1
    return f"{max(total // envs // 4, 1)}, for a few updates"


def find(spec: RunSpec, ledger: Ledger, limit: int) -> Iterator[Finding]:
    knobs = ledger.knobs
    total = knobs.get("total_timesteps", 0)
    rollout = knobs.get("n_steps", 0) * knobs.get("n_envs", 0)
    if spec.on_policy and 1 < total < rollout and not spec.learns_again:
        yield Finding(
            code=CODE,
            severity=SEVERITY,
            message=_message(rollout, total),
            where="model.n_steps",
        )


def _message(rollout: int, total: int) -> str:
    return f"a rollout of {rollout:,} steps is longer than the run of {total:,}"
