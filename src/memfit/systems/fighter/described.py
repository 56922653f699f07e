"""The training as a hand-made assessment describes it, with all its waste."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import SubprocVecEnv, VecFrameStack, VecTransposeImage

from memfit.errors import UsageError
from memfit.systems.fighter.env import FighterEnv
from memfit.systems.fighter.settings import FRAME_STACK, Settings
from memfit.systems.fighter.training import FighterTraining, checkpoints
from memfit.systems.program import Report, uninterrupted

SAVE_REPLAY_BUFFER = True  # PPO has no replay buffer, so that this saves nothing


class Described(FighterTraining):
    """Workers with all of torch, whole stacks of frames in the rollout, whole minibatches."""

    def __init__(self, settings: Settings, report: Report = lambda stage, share: None) -> None:
        super().__init__(settings, report)
        if settings.eval_every is not None:
            raise UsageError(
                "as described, the evaluation is made and never passed on: leave out --eval-every, "
                "or leave out --as-described"
            )
        # Episodes last EP_LENGTH steps, with as many fights as there is time for.
        game = replace(settings.game, to_the_end=True)
        makers: list[Callable[[], Any]] = [lambda: Monitor(FighterEnv(game))] * settings.n_envs
        with uninterrupted():
            self.workers = SubprocVecEnv(makers)
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        try:
            self.env = VecTransposeImage(VecFrameStack(self.workers, FRAME_STACK))
            self.model = PPO("CnnPolicy", self.env, **self.ppo)
            kept = str(settings.output or self._temporary())
            self.callbacks.append(checkpoints(settings, kept, replay=SAVE_REPLAY_BUFFER))
            # Made, and left out of the list: nothing is ever evaluated.
            self.evaluation = EvalCallback(self.env, eval_freq=settings.save_every)
        except BaseException:
            self.close()
            raise

    def _temporary(self) -> str:
        self._directory = tempfile.TemporaryDirectory(prefix="fighter-")
        return self._directory.name

    def before_iteration(self) -> None:
        """New matches, of which the model does not hear: it goes on from its last observation."""
        self.env.reset()

    def close(self) -> None:
        """End the workers; checkpoints that nobody asked for go with them."""
        if self.workers.waiting:  # interrupted in the middle of a step: its answer is never read
            for process in self.workers.processes:
                process.kill()
                process.join()
            self.workers.closed = True
        self.workers.close()
        if self._directory is not None:
            self._directory.cleanup()
