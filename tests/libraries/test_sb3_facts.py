"""What is read off a live model of stable-baselines3: how many frames its observations stack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import FrameStackObservation, NormalizeObservation
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecMonitor, VecNormalize

from memfit.dropins import StackFrames
from memfit.libraries.sb3 import facts
from memfit.model import VecEnvSpec


class Dots(gymnasium.Env[Any, Any]):
    """Three numbers, never the same."""

    observation_space = spaces.Box(0.0, 1.0, (3,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return self.np_random.random(3, np.float32), {}

    def step(self, action: Any) -> Any:
        return self.np_random.random(3, np.float32), 0.0, False, False, {}


def many(make: Callable[[], gymnasium.Env[Any, Any]] = Dots) -> Any:
    return DummyVecEnv([make] * 2)


def read(env: Any, algorithm: type[Any] = PPO) -> VecEnvSpec:
    size = {"n_steps": 4, "batch_size": 8} if algorithm is PPO else {"buffer_size": 10}
    model = algorithm("MlpPolicy", env, device="cpu", **size)
    spec = facts.read(model, 100, None, facts.SeenUpdate())
    assert spec.vec_env is not None
    return spec.vec_env


@pytest.mark.parametrize(
    ("env", "stack"),
    [
        (many(), 1),
        (VecFrameStack(many(), 4), 4),
        (VecMonitor(VecFrameStack(many(), 4)), 4),
        (VecFrameStack(VecNormalize(many()), 4), 4),
        (VecNormalize(VecFrameStack(many(), 4)), 1),
        (VecNormalize(VecFrameStack(many(), 4), norm_obs=False), 4),
        (VecFrameStack(VecFrameStack(many(), 3), 2), 2),
        (many(lambda: FrameStackObservation(Dots(), 5)), 5),
        (many(lambda: StackFrames(Dots(), 5)), 5),
        (many(lambda: NormalizeObservation(FrameStackObservation(Dots(), 5))), 1),
    ],
)
def test_a_rollout_stores_stacks_unless_they_are_normalised_afterwards(
    env: Any, stack: int
) -> None:
    assert read(env).stack == stack


def test_a_replay_stores_what_was_not_normalised() -> None:
    assert read(VecNormalize(VecFrameStack(many(), 4)), DQN).stack == 4


def test_wrappers_are_named_from_the_outside_in() -> None:
    seen = read(VecMonitor(VecFrameStack(many(lambda: StackFrames(Dots(), 2)), 4)))
    assert seen.kind == "DummyVecEnv"
    assert seen.wrappers == ("VecMonitor", "VecFrameStack", "StackFrames")
    assert seen.stack == 4
