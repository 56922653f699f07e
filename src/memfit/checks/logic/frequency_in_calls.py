"""MF009: a callback comes n_envs times rarer than its number says.

What: `eval_freq` and `save_freq` count calls, and there is one call for a step of all environments.
With `n_envs` of 8, `save_freq=10_000` saves every 80,000 steps (SB3#446, SB3#1474). A frequency
that the script divides where it makes the callback is taken to be meant so.

Why: the checkpoint that was to survive an out-of-memory kill is not there, or a short run ends
before the first one.

Bad:
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import CheckpointCallback
    from stable_baselines3.common.env_util import make_vec_env

    model = PPO("MlpPolicy", make_vec_env("CartPole-v1", n_envs=8))
    model.learn(1_000_000, CheckpointCallback(save_freq=10_000, save_path="checkpoints"))

Good:
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import CheckpointCallback
    from stable_baselines3.common.env_util import make_vec_env

    model = PPO("MlpPolicy", make_vec_env("CartPole-v1", n_envs=8))
    model.learn(1_000_000, CheckpointCallback(save_freq=10_000 // 8, save_path="checkpoints"))
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks._sb3 import PACKAGES, models
from memfit.checks.spot import Spot
from memfit.model import Finding, Ledger, RunSpec, Severity
from memfit.syntax import Source, argument, calls, last_name, number, origin

CODE = "MF009"
SEVERITY = Severity.INFO
_PLACES = {"EvalCallback": ("eval_freq", 4), "CheckpointCallback": ("save_freq", 0)}
NAMES = {"evaluate": "eval_freq", "save": "save_freq"}


def find_in_source(source: Source) -> Iterator[Spot]:
    known = {model.n_envs for model in models(source)}
    envs = known.pop() if len(known) == 1 else None
    if envs is None or envs < 2:
        return
    for call in calls(source, PACKAGES, _PLACES):
        name, place = _PLACES[last_name(call.func)]
        given = argument(call, name, place)
        steps = number(source, given)
        if given is None or steps is None or steps < 2 or _divided(source, given):
            continue
        if _digits(steps * envs) >= _digits(steps):  # else it was chosen for its product
            yield Spot(
                call,
                f"{name}={steps:,} counts calls: with {envs} envs that is every {steps * envs:,} "
                "steps",
                f"{name}=max({steps} // {envs}, 1)",
            )


def _digits(value: int) -> int:
    """How many digits a number has, without the zeros at its end: round ones have few."""
    return len(str(value).rstrip("0"))


def _divided(source: Source, given: ast.expr) -> bool:
    held = origin(source, given)
    return held is not None and any(isinstance(n, ast.FloorDiv | ast.Div) for n in ast.walk(held))


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
