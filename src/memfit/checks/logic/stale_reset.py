"""MF307: an env is reset behind its model's back.

What: the training env is reset before `learn(..., reset_num_timesteps=False)`.

Why: the model goes on from the observation that it had last, which belongs to the episode from
before the reset. With `reset_num_timesteps=False` it does not reset the env itself, so the first
sample of every call of learn() is wrong. Nothing need be reset: the episode just goes on.

Bad:
    from stable_baselines3 import PPO

    model = PPO("MlpPolicy", env)
    for part in range(10):
        env.reset()
        model.learn(10_000, reset_num_timesteps=False)

Good:
    from stable_baselines3 import PPO

    model = PPO("MlpPolicy", env)
    for part in range(10):
        model.learn(10_000, reset_num_timesteps=False)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks._sb3 import models
from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, constant, dotted, keyword, last_name, loops_around

CODE = "MF307"
SEVERITY = Severity.WARNING
CLEAN = (
    (
        "from stable_baselines3 import PPO\nmodel = PPO('MlpPolicy', env)\nenv.reset()\n"
        "model.learn(9, reset_num_timesteps=False)\n"
    ),
)


def find_in_source(source: Source) -> Iterator[Spot]:
    envs = {dotted(m.env) for m in models(source)} - {""}
    goes_on = [
        c
        for c in source.nodes(ast.Call)
        if last_name(c.func) == "learn"
        and constant(source, keyword(c, "reset_num_timesteps")) is False
    ]
    for call in source.nodes(ast.Call) if goes_on else []:
        held = call.func.value if isinstance(call.func, ast.Attribute) else None
        if last_name(call.func) != "reset" or dotted(held) not in envs:
            continue
        around = set(loops_around(source, call))
        if any(around & set(loops_around(source, learn)) for learn in goes_on):
            yield Spot(
                call,
                f"{dotted(held)}.reset() leaves the model with its observation from before",
                "leave it out: the episode goes on",
            )
