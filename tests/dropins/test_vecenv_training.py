"""Trainings with the light vector env end with the parameters of the library's, to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import (
    SubprocVecEnv,
    VecEnv,
    VecFrameStack,
    VecNormalize,
)

from memfit.dropins import LightVecEnv
from tests.dropins.vecenv_envs import Walk

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning"),
    pytest.mark.timeout(300),
]

CARTPOLE = "CartPole-v1"
PENDULUM = "Pendulum-v1"
PPO_OPTIONS: dict[str, Any] = {"n_steps": 32, "batch_size": 32, "n_epochs": 1}
OFF_POLICY = {"learning_starts": 20, "train_freq": 4, "batch_size": 16, "buffer_size": 400}


def small() -> dict[str, Any]:
    return {"policy_kwargs": {"net_arch": [16]}, "seed": 1, "device": "cpu"}


class Looks(BaseCallback):
    """Holds what a callback may hold: the locals of the last step."""

    def _on_step(self) -> bool:
        assert "new_obs" in self.locals
        return True


def made(cls: Any, what: Any, count: int) -> VecEnv:
    options = {"start_method": "fork"} if cls is SubprocVecEnv else {"workers": 2}
    return make_vec_env(what, n_envs=count, seed=7, vec_env_cls=cls, vec_env_kwargs=options)


def dict_walk() -> gymnasium.Env[Any, Any]:
    return gymnasium.wrappers.TimeLimit(Walk("dict"), 9)


RUNS: dict[str, tuple[Any, str, Any, Callable[[Any], Any], dict[str, Any], int]] = {
    "PPO": (PPO, "MlpPolicy", CARTPOLE, lambda env: env, PPO_OPTIONS, 20 * 32 * 3),
    "PPO, timeouts": (PPO, "MlpPolicy", PENDULUM, lambda env: env, PPO_OPTIONS, 20 * 32 * 3),
    "PPO, Dict": (PPO, "MultiInputPolicy", dict_walk, lambda env: env, PPO_OPTIONS, 20 * 32 * 3),
    "PPO, normalized": (PPO, "MlpPolicy", PENDULUM, VecNormalize, PPO_OPTIONS, 20 * 32 * 3),
    "PPO, stacked": (
        PPO, "MlpPolicy", CARTPOLE, lambda env: VecFrameStack(env, 3), PPO_OPTIONS, 20 * 32 * 3,
    ),
    "DQN": (DQN, "MlpPolicy", CARTPOLE, lambda env: env, OFF_POLICY, 300),
    "DQN, Dict": (DQN, "MultiInputPolicy", dict_walk, lambda env: env, OFF_POLICY, 300),
    "SAC": (SAC, "MlpPolicy", PENDULUM, lambda env: env, OFF_POLICY, 300),
    "SAC, normalized": (SAC, "MlpPolicy", PENDULUM, VecNormalize, OFF_POLICY, 300),
}  # fmt: skip


# What the other runs have too.
SLOW = ("PPO", "PPO, Dict", "PPO, normalized", "SAC")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in RUNS]
)
def test_parameters_after_twenty_updates_are_the_same(name: str) -> None:
    algorithm, policy, what, wrap, options, steps = RUNS[name]
    found = {}
    for cls in (SubprocVecEnv, LightVecEnv):
        inner = made(cls, what, 3)
        env = wrap(inner)
        model = algorithm(policy, env, **options, **small())
        model.learn(steps, callback=Looks())
        assert model._n_updates >= 20
        found[cls] = {key: part.numpy().copy() for key, part in model.policy.state_dict().items()}
        if isinstance(inner, LightVecEnv):
            assert inner.copies == 0
        env.close()
    ours, theirs = found[LightVecEnv], found[SubprocVecEnv]
    assert all(np.array_equal(ours[key], theirs[key]) for key in theirs)


def test_evaluation_has_workers_of_its_own_and_copies_nothing() -> None:
    env, other = made(LightVecEnv, CARTPOLE, 2), made(LightVecEnv, CARTPOLE, 2)
    watch = EvalCallback(other, eval_freq=40, n_eval_episodes=3, verbose=0)
    model = PPO("MlpPolicy", env, **PPO_OPTIONS, **small())
    model.learn(32 * 2 * 4, callback=watch)
    assert np.isfinite(watch.last_mean_reward)
    assert isinstance(env, LightVecEnv) and isinstance(other, LightVecEnv)
    assert env.copies == other.copies == 0
    env.close()
    other.close()


def test_spaces_are_those_of_the_envs() -> None:
    env = made(LightVecEnv, PENDULUM, 1)
    assert isinstance(env.action_space, spaces.Box) and env.num_envs == 1
    env.close()
