"""The stable-baselines3 run that a run spec describes, built and made to learn.

From there on everything is as if a script had built it: the run is stopped where it would learn,
and the installed version's own objects are read.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memfit.errors import SpecError, one_line
from memfit.libraries.sb3 import described_env
from memfit.libraries.sb3.changed_settings import CHANGEABLE

_CONSTRUCTOR = (*CHANGEABLE, "train_freq")


def learn(facts: Mapping[str, Any], scratch: Path) -> None:
    """Build the run and call its `learn`, which does not return in a survey."""
    algorithm = getattr(importlib.import_module(facts["module"]), facts["algorithm"], None)
    if algorithm is None:
        raise SpecError(f"the installed {facts['module']} has no {facts['algorithm']}")
    try:
        model, callbacks = _build(facts, algorithm, scratch)
    except Exception as error:
        raise SpecError(f"{facts['algorithm']} refuses this run: {one_line(error)}") from error
    model.learn(facts["knobs"]["total_timesteps"], callback=callbacks or None)


def _build(facts: Mapping[str, Any], algorithm: Any, scratch: Path) -> tuple[Any, list[Any]]:
    callbacks = [_callback(facts, one, scratch) for one in facts["callback"]]
    knobs = facts["knobs"]
    options = {name: knobs[name] for name in _CONSTRUCTOR if knobs[name] is not None}
    if facts["optimize_memory_usage"]:
        options["optimize_memory_usage"] = True
        # Timeouts and the optimized layout exclude each other.
        options["replay_buffer_kwargs"] = {"handle_timeout_termination": False}
    if facts["rollout_buffer_class"]:
        module, _, name = facts["rollout_buffer_class"].partition(":")
        options["rollout_buffer_class"] = getattr(importlib.import_module(module), name)
    model = algorithm(
        facts["policy"],
        _vec_env(facts, facts["env"]["vec"], knobs["n_envs"]),
        policy_kwargs=_policy_kwargs(facts["policy_kwargs"]) or None,
        device="cpu",
        **options,
    )
    return model, callbacks


def _vec_env(facts: Mapping[str, Any], kind: str, count: int) -> Any:
    from stable_baselines3.common.vec_env import (
        DummyVecEnv,
        SubprocVecEnv,
        VecFrameStack,
        VecNormalize,
    )

    made = described_env.env_fns(facts, count)
    env: Any
    if kind == "subproc":
        env = SubprocVecEnv(made, start_method=facts["env"]["start_method"])
    else:
        env = DummyVecEnv(made)
    if facts["env"]["frame_stack"] > 1:
        env = VecFrameStack(env, facts["env"]["frame_stack"])
    if facts["env"]["normalize"]:
        env = VecNormalize(env)
    return env


def _policy_kwargs(facts: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in facts.items() if value is not None}
    if "features_dim" in given:
        given["features_extractor_kwargs"] = {"features_dim": given.pop("features_dim")}
    return given


def _callback(facts: Mapping[str, Any], told: Mapping[str, Any], scratch: Path) -> Any:
    from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback

    if told["kind"] == "save":
        return CheckpointCallback(
            told["every"], str(scratch), save_replay_buffer=told["save_replay_buffer"]
        )
    return EvalCallback(
        _as_trained(_vec_env(facts, "dummy", 1)),
        eval_freq=told["every"],
        best_model_save_path=str(scratch) if told["save_best"] else None,
        verbose=0,
        warn=False,
    )


def _as_trained(env: Any) -> Any:
    """The wrapper that a model puts around its own env when it sees images."""
    from stable_baselines3.common.preprocessing import (
        is_image_space,
        is_image_space_channels_first,
    )
    from stable_baselines3.common.vec_env import VecTransposeImage

    space = env.observation_space
    if is_image_space(space) and not is_image_space_channels_first(space):
        return VecTransposeImage(env)
    return env
