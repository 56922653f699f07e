"""MF304: evaluation steps the training env.

What: `EvalCallback` gets the env that the model trains in.

Why: evaluating resets and steps it in the middle of a rollout. The next sample of the rollout then
joins an observation from before with what happens after: training on what never was.

Bad:
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import EvalCallback

    model = PPO("MlpPolicy", env)
    model.learn(100_000, callback=EvalCallback(env))

Good:
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import EvalCallback

    model = PPO("MlpPolicy", env)
    model.learn(100_000, callback=EvalCallback(eval_env))
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.checks._sb3 import PACKAGES, models
from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, argument, calls, dotted

CODE = "MF304"
SEVERITY = Severity.WARNING


def find_in_source(source: Source) -> Iterator[Spot]:
    # An env that is given anew in between is another one.
    trained = {
        (source.scope(m.call), dotted(m.env))
        for m in models(source)
        if dotted(m.env) and _once(source, source.scope(m.call), dotted(m.env))
    }
    for call in calls(source, PACKAGES, ("EvalCallback", "MaskableEvalCallback")):
        given = argument(call, "eval_env", 0)
        if given is not None and (source.scope(call), dotted(given)) in trained:
            yield Spot(
                call,
                f"{dotted(given)} is the env that the model trains in",
                "an env of its own, made in the same way",
            )


def _once(source: Source, scope: object, name: str) -> bool:
    found = source.bindings_in(scope, name)  # type: ignore[arg-type]
    wraps = [b for b in found if b.value is not None and name in source.segment(b.value)]
    return len(found) - len(wraps) <= 1
