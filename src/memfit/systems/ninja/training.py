"""Training with the PPO of stable-baselines3."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv

from memfit.dropins import WindowRolloutBuffer
from memfit.systems.ninja.env import NinjaEnv
from memfit.systems.ninja.settings import TrainingSettings


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """What is said after a rollout; means are over the last 100 episodes."""

    steps: int
    episodes: int
    mean_return: float
    won: float
    seconds: float


@contextmanager
def vec_env(settings: TrainingSettings) -> Iterator[VecEnv]:
    """The environments of a training, in this process or each in its own."""
    method = settings.start_method
    made = make_vec_env(
        NinjaEnv,
        n_envs=settings.n_envs,
        seed=settings.seed,
        env_kwargs={"config": settings.env},
        vec_env_cls=DummyVecEnv if method is None else SubprocVecEnv,
        vec_env_kwargs={} if method is None else {"start_method": method},
    )
    try:
        yield made
    finally:
        _close(made)


def _close(made: VecEnv) -> None:
    """Close, also where Ctrl-C has ended the workers already."""
    try:
        made.close()
    except (EOFError, ConnectionError):
        if isinstance(made, SubprocVecEnv):
            for process in made.processes:
                process.join(timeout=5)


def build(settings: TrainingSettings, env: VecEnv) -> PPO:
    """PPO over the environments, not yet trained."""
    kwargs: dict[str, Any] = {}
    if settings.env.graphs != "none":
        from memfit.systems.ninja.extractor import GraphFeatures

        levels = settings.env.levels if settings.env.graphs == "number" else ()
        kwargs["policy_kwargs"] = {
            "features_extractor_class": GraphFeatures,
            "features_extractor_kwargs": {"levels": levels},
        }
    if settings.storage == "windows":  # flattened without a copy of the observations
        kwargs["rollout_buffer_class"] = WindowRolloutBuffer
    return PPO(
        "MultiInputPolicy",
        env,
        n_steps=settings.n_steps,
        batch_size=min(settings.batch_size, settings.n_steps * settings.n_envs),
        n_epochs=settings.epochs,
        learning_rate=settings.learning_rate,
        gamma=0.98,
        ent_coef=0.01,
        seed=settings.seed,
        device=settings.device,
        **kwargs,
    )


def train(
    settings: TrainingSettings,
    report: Callable[[Rollout], None] = lambda rollout: None,
    progress: Callable[[str, float], None] = lambda stage, share: None,
) -> PPO:
    """Train; the model afterwards."""
    with vec_env(settings) as env:
        model = build(settings, env)
        model.learn(settings.steps, callback=_Told(report, progress))
    return model


class _Told(BaseCallback):
    """Tells how far a training is, and what became of each rollout."""

    def __init__(
        self, report: Callable[[Rollout], None], progress: Callable[[str, float], None]
    ) -> None:
        super().__init__()
        self.report = report
        self.progress = progress
        self.episodes = 0
        self.begun = time.monotonic()

    def _on_step(self) -> bool:
        self.episodes += int(np.sum(self.locals["dones"]))
        self.progress("rollout", self.num_timesteps / self.locals["total_timesteps"])
        return True

    def _on_rollout_end(self) -> None:
        last = self.model.ep_info_buffer or ()
        won = self.model.ep_success_buffer or ()
        now = time.monotonic()
        self.report(
            Rollout(
                steps=self.num_timesteps,
                episodes=self.episodes,
                mean_return=float(np.mean([one["r"] for one in last])) if last else float("nan"),
                won=float(np.mean(won)) if won else 0.0,
                seconds=now - self.begun,
            )
        )
        self.begun = now
