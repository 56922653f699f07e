"""MF301: the minibatch is larger than the rollout.

What: `batch_size` is above `n_steps * n_envs`.

Why: there are no such minibatches: each epoch takes one step on all samples. What an update needs
is that of the rollout, so that a plan by the batch size is wrong, and so is a batch that was meant.

Bad:
    from stable_baselines3 import PPO

    model = PPO("MlpPolicy", "CartPole-v1", n_steps=128, batch_size=256)

Good:
    from stable_baselines3 import PPO

    model = PPO("MlpPolicy", "CartPole-v1", n_steps=256, batch_size=128)
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.checks._sb3 import models
from memfit.checks.spot import Spot
from memfit.model import Finding, Ledger, RunSpec, Severity
from memfit.syntax import Source

CODE = "MF301"
SEVERITY = Severity.WARNING


def find_in_source(source: Source) -> Iterator[Spot]:
    for model in models(source):
        batch, rollout = model.batch_size, model.rollout
        if model.on_policy and batch is not None and rollout is not None and batch > rollout:
            yield Spot(model.call, _message(batch, rollout), f"batch_size={rollout} or less")


def find(spec: RunSpec, ledger: Ledger, limit: int) -> Iterator[Finding]:
    knobs = ledger.knobs
    batch = knobs.get("batch_size", 0)
    rollout = knobs.get("n_steps", 0) * knobs.get("n_envs", 0)
    if spec.on_policy and 0 < rollout < batch:
        yield Finding(
            code=CODE,
            severity=SEVERITY,
            message=_message(batch, rollout),
            where="model.batch_size",
        )


def _message(batch: int, rollout: int) -> str:
    return f"batch_size {batch:,} is above the rollout of {rollout:,} samples"
