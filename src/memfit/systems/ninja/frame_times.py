"""Where the time of an environment's frames goes, by cProfile."""

from __future__ import annotations

import cProfile
import io
import pstats
from collections.abc import Callable

import numpy as np

from memfit.systems.ninja.env import NinjaEnv
from memfit.systems.ninja.settings import EnvironmentConfig

_FUNCTIONS = 40


def frame_times(
    config: EnvironmentConfig,
    *,
    n_envs: int,
    frames: int,
    seed: int,
    progress: Callable[[str, float], None],
) -> str:
    """A table of functions over so many frames of random actions."""
    envs = [NinjaEnv(config) for _ in range(n_envs)]
    draw = np.random.default_rng(seed)
    for number, env in enumerate(envs):
        env.reset(seed=seed + number)

    def frame() -> None:
        for env in envs:
            _, _, ended, timeout, _ = env.step(draw.integers(env.action_space.n))  # type: ignore[attr-defined]
            if ended or timeout:
                env.reset()

    profile = cProfile.Profile()
    for number in range(1, frames + 1):
        profile.runcall(frame)
        progress("time", number / frames)
    text = io.StringIO()
    pstats.Stats(profile, stream=text).sort_stats("cumulative").print_stats(_FUNCTIONS)
    return text.getvalue()
