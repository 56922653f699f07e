"""A process that trains the ninja and prints what it learned, beside actions drawn at random."""

from __future__ import annotations

import json
import sys
import time
from math import isnan
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO

from memfit.systems.ninja.env import NinjaEnv
from memfit.systems.ninja.settings import EnvironmentConfig, TrainingSettings
from memfit.systems.ninja.training import Rollout, train

LEVEL, MAX_STEPS, STEPS, EPISODES, SEED = "first-steps", 100, 12_288, 100, 0


def main() -> None:
    """Print the result as JSON."""
    torch.set_num_threads(1)  # the same sums on every machine
    config = EnvironmentConfig.for_parallel_training(levels=(LEVEL,), max_steps=MAX_STEPS)
    settings = TrainingSettings(env=config, n_envs=8, steps=STEPS, seed=SEED)
    rollouts: list[dict[str, float | None]] = []

    def told(rollout: Rollout) -> None:
        known = None if isnan(rollout.mean_return) else round(rollout.mean_return, 3)
        rollouts.append({"steps": rollout.steps, "mean_return": known})
        print(f"{rollout.steps} steps: {rollout.mean_return:+.2f}", file=sys.stderr, flush=True)

    begun = time.process_time()
    model = train(settings, told)
    seconds = time.process_time() - begun
    drawn = returns_of(config, episodes=EPISODES, seed=1_000)
    learned = returns_of(config, episodes=EPISODES, seed=1_000, model=model)
    print(
        json.dumps(
            {
                "level": LEVEL,
                "max_steps": MAX_STEPS,
                "steps": rollouts[-1]["steps"] if rollouts else 0,
                "seed": SEED,
                "episodes": EPISODES,
                "cpu_seconds": round(seconds, 1),
                "random": {"mean": mean(drawn), "deviation": stdev(drawn)},
                "learned": {"mean": mean(learned), "deviation": stdev(learned)},
                "rollouts": rollouts,
            }
        )
    )


def returns_of(
    config: EnvironmentConfig, *, episodes: int, seed: int, model: PPO | None = None
) -> list[float]:
    """The returns of a trained policy, or without one of actions drawn at random."""
    env = NinjaEnv(config)
    draw = np.random.default_rng(seed)
    found = []
    for episode in range(episodes):
        observation, _ = env.reset(seed=seed + episode)
        total, over = 0.0, False
        while not over:
            action: Any = draw.integers(env.action_space.n)  # type: ignore[attr-defined]
            if model is not None:
                action, _ = model.predict(observation, deterministic=False)
            observation, reward, ended, timeout, _ = env.step(action)
            total += reward
            over = ended or timeout
        found.append(total)
    return found


if __name__ == "__main__":
    main()
