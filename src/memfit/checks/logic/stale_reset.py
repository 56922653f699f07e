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
from memfit.syntax import Source, dotted, family, keyword, last_name, loops_around

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
    resets = [
        c
        for c in source.nodes(ast.Call)
        if last_name(c.func) == "reset" and dotted(c.func).removesuffix(".reset") in envs
    ]
    for call in resets:
        if _before_learning(source, call) or _called_before_learning(source, call):
            held = dotted(call.func).removesuffix(".reset")
            yield Spot(
                call,
                f"{held}.reset() leaves the model with its observation from before",
                "leave it out: the episode goes on",
            )


def _before_learning(source: Source, call: ast.Call) -> bool:
    """Whether a loop around a call goes on learning."""
    return any(map(_goes_on, loops_around(source, call)))


def _called_before_learning(source: Source, reset: ast.Call) -> bool:
    """Whether its method is called in such a loop of its class, or of those it is made of."""
    method, owner = source.function(reset), source.class_of(reset)
    known = family(source, owner) if owner is not None else None
    return method is not None and any(
        dotted(c.func) == f"self.{method.name}" and _before_learning(file, c)
        for file, _ in known or []
        for c in file.nodes(ast.Call)
    )


def _goes_on(loop: ast.AST) -> bool:
    """Whether it calls learn(..., reset_num_timesteps=False)."""
    for c in ast.walk(loop):
        if isinstance(c, ast.Call) and last_name(c.func) == "learn":
            given = keyword(c, "reset_num_timesteps")
            if isinstance(given, ast.Constant) and given.value is False:
                return True
    return False
