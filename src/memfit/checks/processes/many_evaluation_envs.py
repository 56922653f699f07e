"""MF408: evaluation has as many envs as training.

What: the env of `EvalCallback` is made of several envs, as many as those that train.

Why: they are all there during the whole run, each with its own state and, in workers, its own
imports, for a few episodes now and then. One env evaluates the same.

Bad:
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import EvalCallback
    from stable_baselines3.common.env_util import make_vec_env

    env = make_vec_env("CartPole-v1", n_envs=16)
    eval_env = make_vec_env("CartPole-v1", n_envs=16)
    PPO("MlpPolicy", env).learn(1_000_000, callback=EvalCallback(eval_env))

Good:
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import EvalCallback
    from stable_baselines3.common.env_util import make_vec_env

    env = make_vec_env("CartPole-v1", n_envs=16)
    eval_env = make_vec_env("CartPole-v1", n_envs=1)
    PPO("MlpPolicy", env).learn(1_000_000, callback=EvalCallback(eval_env))
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.checks._sb3 import PACKAGES, models, n_envs
from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, argument, calls, dotted

CODE = "MF408"
SEVERITY = Severity.INFO


def find_in_source(source: Source) -> Iterator[Spot]:
    training = [(m.n_envs, dotted(m.env)) for m in models(source)]
    most = max((envs for envs, _ in training if envs is not None), default=0)
    for call in calls(source, PACKAGES, ("EvalCallback", "MaskableEvalCallback")):
        given = argument(call, "eval_env", 0)
        envs = n_envs(source, given)
        if envs is None or envs < 2 or envs < most or not most:
            continue
        if dotted(given) in {name for _, name in training if name}:
            continue
        yield Spot(call, f"{envs} envs are kept for evaluation", "n_envs=1 for evaluation")
