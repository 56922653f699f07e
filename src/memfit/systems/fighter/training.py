"""What both trainings share: how they run, and what they tell."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import (
    BaseCallback,
    CallbackList,
    CheckpointCallback,
    EvalCallback,
)
from stable_baselines3.common.logger import Logger

from memfit.dropins import LightVecEnv
from memfit.errors import TargetFailed, UsageError
from memfit.systems.fighter.env import FighterEnv
from memfit.systems.fighter.settings import Game, Settings
from memfit.systems.program import Report


@dataclass(frozen=True, kw_only=True)
class Iteration:
    """One rollout and what was learned from it."""

    number: int
    steps: int  # timesteps of all envs since the beginning
    mean_return: float | None  # of the last 100 episodes that ended; None before the first
    reward: float  # of all envs in this rollout, a thousand steps
    seconds: float
    evaluated: float | None = None  # the mean return of an evaluation, where there was one


class ProgressCallback(BaseCallback):
    """Says how far the rollout is, and how far the update: the optimizer tells of its steps."""

    def __init__(self, report: Report) -> None:
        super().__init__()
        self._report = report
        self._gradient_steps = 0
        self._hook: Any = None

    def _on_training_start(self) -> None:
        optimizer = self.model.policy.optimizer
        self._hook = optimizer.register_step_post_hook(self._on_gradient_step)

    def _on_training_end(self) -> None:
        self._hook.remove()

    def _on_step(self) -> bool:
        buffer = self.model.rollout_buffer  # type: ignore[attr-defined]
        self._report("rollout", (buffer.pos + 1) / buffer.buffer_size)
        return True

    def _on_rollout_end(self) -> None:
        self._gradient_steps = 0
        self._report("update", 0.0)

    def _on_gradient_step(self, *_: Any) -> None:
        model: Any = self.model
        samples = model.rollout_buffer.buffer_size * model.n_envs
        self._gradient_steps += 1
        self._report(
            "update", self._gradient_steps / (model.n_epochs * -(-samples // model.batch_size))
        )


class FighterTraining(ABC):
    """A training that yields after every iteration; `close` ends its workers."""

    model: PPO
    evaluation: EvalCallback | None = None

    def __init__(self, settings: Settings, report: Report = lambda stage, share: None) -> None:
        self.settings = settings
        self.report = report
        self.callbacks: list[BaseCallback] = [ProgressCallback(report)]
        self.ppo: dict[str, Any] = {  # what both trainings give their PPO
            "n_steps": settings.n_steps,
            "batch_size": settings.minibatch,
            "n_epochs": settings.n_epochs,
            "learning_rate": settings.learning_rate,
            "ent_coef": settings.entropy,
            "seed": settings.seed,
            "device": settings.device,
        }

    def train(self) -> Iterator[Iteration]:
        """Rollout, then update, until all steps are done."""
        settings = self.settings
        # The library's own logger leaves an empty directory behind for each call of learn().
        self.model.set_logger(Logger(folder=None, output_formats=[]))
        for number in range(1, settings.iterations + 1):
            started = time.perf_counter()
            self.before_iteration()
            self.model.learn(
                settings.rollout,
                callback=CallbackList(list(self.callbacks)),
                reset_num_timesteps=False,
            )
            ended = [episode["r"] for episode in self.model.ep_info_buffer or ()]
            rewards: Any = self.model.rollout_buffer.rewards
            yield Iteration(
                number=number,
                steps=self.model.num_timesteps,
                mean_return=float(np.mean(ended)) if ended else None,
                reward=float(rewards.mean()) * 1000,
                seconds=time.perf_counter() - started,
                evaluated=self._evaluated(number),
            )
        if settings.output is not None:
            # How a rollout was kept is no part of a policy: this loads where memfit is not.
            self.model.save(settings.output / "fighter.zip", exclude=["rollout_buffer_class"])

    def _evaluated(self, number: int) -> float | None:
        every = self.settings.eval_every
        if self.evaluation is None or every is None or number % every:
            return None
        return float(self.evaluation.last_mean_reward)

    @abstractmethod
    def before_iteration(self) -> None:
        """Called before each rollout."""

    @abstractmethod
    def close(self) -> None:
        """End the workers and remove what is not to stay."""


def checkpoints(settings: Settings, directory: str, *, replay: bool) -> CheckpointCallback:
    """The library's callback; `save_freq` counts vector steps, each of n_envs timesteps."""
    return CheckpointCallback(
        save_freq=settings.save_every,
        save_path=directory,
        name_prefix="fighter",
        save_replay_buffer=replay,
    )


def check_game(game: Game) -> None:
    """Start the game once in a process that then ends, and refuse one that does not start."""
    try:
        LightVecEnv([partial(FighterEnv, game)]).close()
    except TargetFailed:
        raise UsageError("the emulator fails with this ROM or savestate: give others") from None
