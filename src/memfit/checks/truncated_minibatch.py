"""MF008: the last minibatch of every epoch is smaller than the others.

What: `batch_size` does not divide `n_steps * n_envs`.

Why: it costs no memory. But the few samples of the last minibatch weigh as much in training as a
full one, and kernels may choose other ways of working for its size. stable-baselines3 warns of it
when the model is built.

Bad:
    model = PPO("MlpPolicy", env, n_steps=1000, batch_size=64)

Good:
    model = PPO("MlpPolicy", env, n_steps=1024, batch_size=64)
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.model import Finding, Ledger, RunSpec, Severity

CODE = "MF008"


def find(spec: RunSpec, ledger: Ledger, limit: int) -> Iterator[Finding]:
    knobs = ledger.knobs
    batch = knobs.get("batch_size", 0)
    rollout = knobs.get("n_steps", 0) * knobs.get("n_envs", 0)
    if not spec.on_policy or not 0 < batch < rollout or rollout % batch == 0:
        return
    yield Finding(
        code=CODE,
        severity=Severity.INFO,
        message=f"batch_size {batch:,} does not divide the rollout of {rollout:,} samples: "
        f"the last minibatch of each epoch has {rollout % batch:,}",
        where="model.batch_size",
    )
