"""Train what one JSON argument describes: a run that benchmarks/accuracy/draw.py has drawn."""

from __future__ import annotations

import json
import sys
import tempfile
from typing import Any

import envs
import sb3_contrib
import stable_baselines3
import torch as th
from extractor import EXTRACTORS
from sb3_contrib.common.wrappers import ActionMasker
from stable_baselines3.common.callbacks import BaseCallback, CheckpointCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    SubprocVecEnv,
    VecEnv,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
)

VEC_ENVS = {"dummy": DummyVecEnv, "subproc": SubprocVecEnv}
WRAPPERS = {
    "normalize": lambda env: VecNormalize(env, norm_obs=True),
    "stack": lambda env: VecFrameStack(env, n_stack=4),
    "monitor": VecMonitor,
}


def vec_env_class(name: str) -> type[VecEnv]:
    """How the envs are held."""
    if name == "light":
        from memfit.dropins import LightVecEnv  # costs memory where it is not used

        return LightVecEnv
    return VEC_ENVS[name]


def build_env(run: dict[str, Any], n_envs: int) -> VecEnv:
    """The envs, and what is wrapped around all of them."""
    wrapper = None
    if run["algorithm"] == "MaskablePPO":
        wrapper = ActionMasker
    env: VecEnv = make_vec_env(
        envs.make,
        n_envs=n_envs,
        seed=5,
        env_kwargs={"spec": run["env"]},
        vec_env_cls=vec_env_class(run["vec_env"]),
        wrapper_class=wrapper,
        wrapper_kwargs={"action_mask_fn": lambda one: one.unwrapped.action_masks()}
        if wrapper
        else None,
    )
    for name in run["wrappers"]:
        env = WRAPPERS[name](env)
    return env


def callbacks(run: dict[str, Any], folder: str) -> list[BaseCallback]:
    """What the run has beside its training."""
    found: list[BaseCallback] = []
    if "evaluate" in run["callbacks"]:
        beside = build_env({**run, "vec_env": "dummy"}, 1)
        found.append(EvalCallback(beside, n_eval_episodes=1, eval_freq=run["every"]))
    if "checkpoint" in run["callbacks"]:
        found.append(CheckpointCallback(run["every"], folder))
    return found


def main() -> None:
    """Build the run and train it."""
    run = json.loads(sys.argv[1])
    th.set_num_threads(run["threads"])
    home = sb3_contrib if hasattr(sb3_contrib, run["algorithm"]) else stable_baselines3
    algorithm = getattr(home, run["algorithm"])
    policy_kwargs: dict[str, Any] = {"net_arch": run["net_arch"], **run["policy_kwargs"]}
    if run["extractor"]:
        policy_kwargs["features_extractor_class"] = EXTRACTORS[run["extractor"]]
        policy_kwargs["features_extractor_kwargs"] = {"features_dim": run["features"]}
    more = dict(run["settings"])
    if run["her"]:
        more["replay_buffer_class"] = stable_baselines3.HerReplayBuffer
    model = algorithm(
        run["policy"],
        build_env(run, run["n_envs"]),
        policy_kwargs=policy_kwargs,
        device="cpu",
        seed=5,
        **more,
    )
    with tempfile.TemporaryDirectory() as folder:
        model.learn(run["timesteps"], callback=callbacks(run, folder))


if __name__ == "__main__":
    main()
