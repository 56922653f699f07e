"""MF305: the replay of an on-policy algorithm is to be saved.

What: `save_replay_buffer=True` in a script that trains on-policy only.

Why: PPO and A2C have no replay: nothing is saved, and no memory is saved by turning it off either.
The setting misleads whoever adds up what the run needs.

Bad:
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import CheckpointCallback

    model = PPO("MlpPolicy", env)
    model.learn(9_000, CheckpointCallback(1_000, "models", save_replay_buffer=True))

Good:
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import CheckpointCallback

    model = PPO("MlpPolicy", env)
    model.learn(9_000, CheckpointCallback(1_000, "models"))
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks._sb3 import OFF_POLICY, ON_POLICY, PACKAGES, models
from memfit.checks.spot import Spot
from memfit.model import Finding, Ledger, RunSpec, Severity
from memfit.syntax import Source, argument, calls, constant

CODE = "MF305"
SEVERITY = Severity.INFO
_MESSAGE = "an on-policy algorithm has no replay buffer: nothing is saved"


def find_in_source(source: Source) -> Iterator[Spot]:
    names = {source.qualified(n).split(".")[-1] for n in source.nodes(ast.Name)}
    if not names & set(ON_POLICY) or names & OFF_POLICY or not any(models(source)):
        return
    for call in calls(source, PACKAGES, ("CheckpointCallback",)):
        if constant(source, argument(call, "save_replay_buffer", 3)) is True:
            yield Spot(call, _MESSAGE, "leave save_replay_buffer out")


def find(spec: RunSpec, ledger: Ledger, limit: int) -> Iterator[Finding]:
    asked = any(c.saves_replay_buffer for c in spec.callbacks)
    if spec.on_policy and asked and spec.buffer.endswith("RolloutBuffer"):
        yield Finding(
            code=CODE,
            severity=SEVERITY,
            message=_MESSAGE,
            where="callback: save_replay_buffer=True",
        )
