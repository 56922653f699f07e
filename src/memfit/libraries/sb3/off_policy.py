"""Off-policy trainings of stable-baselines3: a replay buffer that is filled by repeated rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memfit.libraries.driven import repeat_rows
from memfit.libraries.sb3.facts import array_names
from memfit.libraries.sb3.training import (
    WINDOW_SECONDS,
    WINDOW_STEPS,
    Sb3Training,
    arrays_of,
    repeat_windows,
)
from memfit.model.busy_clock import BusyClock
from memfit.model.training import Mark, Work

FIRST_STEPS, FIRST_SECONDS = 8, 0.3
LATER_STEPS, LATER_SECONDS = 4, 0.3
SOON = 200  # env steps after which a run that is counted begins to learn at the latest
REHEARSED_GRADIENT_STEPS = 6  # beyond every algorithm's policy delay, and two of the longest


class OffPolicy(Sb3Training):
    """A model with a replay buffer."""

    stepped = False
    filled: Mapping[str, int] | None = None  # the knobs at which the buffer was filled

    def prepare(self) -> None:
        super().prepare()
        if hasattr(self.model.replay_buffer, "tracks"):  # memfit's own: what it stores once
            self._step_env(WINDOW_STEPS, WINDOW_SECONDS)

    def collect(self, work: Work) -> None:
        if not work.rehearsal:
            if not self.stepped:
                self._step_env(FIRST_STEPS, FIRST_SECONDS)
            return
        if self.filled != work.knobs:
            self._step_env(work.env_steps, work.env_seconds)
            self._fill(work)
            self.filled = work.knobs
        self._step_env(LATER_STEPS, LATER_SECONDS)

    def hasten(self) -> None:
        self.model.learning_starts = min(self.model.learning_starts, SOON)
        self.arrays_of_buffer = array_names(self.facts())  # before its own have found windows

    def fill(self) -> bool:
        self._fill_rows(self.facts().knobs["total_timesteps"])
        self.model.train(REHEARSED_GRADIENT_STEPS, self.model.batch_size)
        return True

    def _fill(self, work: Work) -> None:
        self._fill_rows(work.knobs["total_timesteps"])

    def _fill_rows(self, steps: int) -> None:
        buffer = self.model.replay_buffer
        filled = max(1, buffer.buffer_size if buffer.full else buffer.pos)
        rows = min(buffer.buffer_size, -(-steps // self.model.n_envs))
        repeat_rows(arrays_of(buffer, self.arrays_of_buffer), filled, rows)
        repeat_windows(buffer, filled, rows)
        repeat_episodes(buffer, filled, rows)

    def _step_env(self, steps: int, seconds: float) -> None:
        """Put a few real transitions into the replay buffer."""
        from stable_baselines3.common.type_aliases import TrainFreq, TrainFrequencyUnit

        model = self.model
        clock = BusyClock()
        for done in range(steps):
            self.running_its_own = True
            model.collect_rollouts(
                model.env,
                train_freq=TrainFreq(1, TrainFrequencyUnit.STEP),
                action_noise=model.action_noise,
                callback=self.callback,
                learning_starts=0,
                replay_buffer=model.replay_buffer,
                log_interval=None,
            )
            self.running_its_own = False
            if done >= 3 and clock.seconds() > seconds:
                break
        if hasattr(model.replay_buffer, "truncate_last_trajectory"):
            model.replay_buffer.truncate_last_trajectory()
        self.stepped = True

    def update(self, work: Work, mark: Mark) -> None:
        steps = work.minibatches * int(getattr(self.model, "policy_delay", 1))
        if work.rehearsal:
            steps = REHEARSED_GRADIENT_STEPS
        self.model.train(gradient_steps=steps, batch_size=work.batch)


def repeat_episodes(buffer: Any, filled: int, rows: int) -> None:
    """Let each copy of the filled rows be episodes of its own, where a buffer knows its episodes.

    Those of a copy that is cut off at the end do not count.
    """
    if not hasattr(buffer, "ep_start"):
        return
    for start in range(filled, rows, filled):
        stop = min(start + filled, rows)
        buffer.ep_start[start:stop] = buffer.ep_start[: stop - start] + start
        if stop - start < filled:
            buffer.ep_length[start:stop] = 0
