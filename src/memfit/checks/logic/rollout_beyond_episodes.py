"""MF306: a rollout has room for many whole episodes.

What: `n_steps` is ten times the length of an episode, or more.

Why: the rollout is the largest thing that a run on-policy holds, and each env fills it with many
episodes before anything is learned. Fewer steps in more envs give as many samples for an update at
the same size, or the same learning with less.

Bad:
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from gymnasium.wrappers import TimeLimit

    env = make_vec_env(lambda: TimeLimit(Game(), max_episode_steps=200), n_envs=2)
    model = PPO("CnnPolicy", env, n_steps=8192)

Good:
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from gymnasium.wrappers import TimeLimit

    env = make_vec_env(lambda: TimeLimit(Game(), max_episode_steps=200), n_envs=16)
    model = PPO("CnnPolicy", env, n_steps=1024)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks._sb3 import models
from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, keyword, number

CODE = "MF306"
SEVERITY = Severity.INFO
_MANY = 10


def find_in_source(source: Source) -> Iterator[Spot]:
    lengths = {
        number(source, keyword(call, "max_episode_steps"))
        for call in source.nodes(ast.Call)
        if keyword(call, "max_episode_steps") is not None
    }
    if len(lengths) != 1 or None in lengths:
        return
    (length,) = lengths
    for model in models(source):
        given = keyword(model.call, "n_steps")  # one that was chosen
        steps = number(source, given)
        if model.on_policy and steps is not None and length and steps >= _MANY * length:
            yield Spot(
                given or model.call,
                f"n_steps {steps:,} is {steps // length} episodes of {length:,} steps",
                f"n_steps={max(steps // _MANY, length)} in more envs",
            )
