"""MF008: the last minibatch of every epoch is smaller than the others.

What: `batch_size` does not divide `n_steps * n_envs`.

Why: it costs no memory. But the few samples of the last minibatch weigh as much in training as a
full one, and kernels may choose other ways of working for its size. stable-baselines3 warns of it
when the model is built.

Bad:
    from stable_baselines3 import PPO

    model = PPO("MlpPolicy", "CartPole-v1", n_steps=1000, batch_size=64)

Good:
    from stable_baselines3 import PPO

    model = PPO("MlpPolicy", "CartPole-v1", n_steps=1024, batch_size=64)
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.checks._sb3 import models
from memfit.checks.spot import Spot
from memfit.model import Finding, Ledger, RunSpec, Severity
from memfit.syntax import Source

CODE = "MF008"
SEVERITY = Severity.INFO


def find_in_source(source: Source) -> Iterator[Spot]:
    for model in models(source):
        batch, rollout = model.batch_size, model.rollout
        if model.on_policy and batch and rollout and batch < rollout and rollout % batch:
            yield Spot(
                model.call, _message(batch, rollout), "a batch_size that divides the rollout"
            )


def find(spec: RunSpec, ledger: Ledger, limit: int) -> Iterator[Finding]:
    knobs = ledger.knobs
    batch = knobs.get("batch_size", 0)
    rollout = knobs.get("n_steps", 0) * knobs.get("n_envs", 0)
    if not spec.on_policy or not 0 < batch < rollout or rollout % batch == 0:
        return
    yield Finding(
        code=CODE,
        severity=Severity.INFO,
        message=_message(batch, rollout),
        where="model.batch_size",
    )


def _message(batch: int, rollout: int) -> str:
    return (
        f"batch_size {batch:,} does not divide the rollout of {rollout:,} samples: "
        f"the last minibatch of each epoch has {rollout % batch:,}"
    )
