"""The same training made to fit: same frames, same samples, same minibatches, less memory."""

from __future__ import annotations

from typing import Any

from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import EvalCallback

from memfit.systems.fighter.micro_ppo import MicroPPO
from memfit.systems.fighter.settings import Settings
from memfit.systems.fighter.training import Report, Training, checkpoints
from memfit.systems.fighter.vec_env import light_env

EVAL_EPISODES = 5


def buffer_of(storage: str) -> type[RolloutBuffer]:
    """What a rollout is kept in: each frame once, or every stack whole."""
    if storage == "stacks":
        return RolloutBuffer
    from memfit.dropins import WindowRolloutBuffer

    buffer: type[RolloutBuffer] = WindowRolloutBuffer
    return buffer


class Fitted(Training):
    """Workers without torch, each frame stored once, minibatches in pieces."""

    def __init__(self, settings: Settings, report: Report = lambda stage, share: None) -> None:
        super().__init__(settings, report)
        self.envs: list[Any] = [light_env(settings.game, settings.n_envs)]
        try:
            self.model = MicroPPO(
                "CnnPolicy",
                self.envs[0],
                n_steps=settings.n_steps,
                batch_size=settings.minibatch,
                micro_batch=settings.micro_batch,
                rollout_buffer_class=buffer_of(settings.storage),
                n_epochs=settings.n_epochs,
                learning_rate=settings.learning_rate,
                ent_coef=settings.entropy,
                seed=settings.seed,
                device=settings.device,
                report=report,
            )
            if settings.output is not None:
                self.callbacks.append(checkpoints(settings, str(settings.output), replay=False))
            if settings.eval_every is not None:
                self._evaluate(settings, settings.eval_every)
        except BaseException:
            self.close()
            raise

    def _evaluate(self, settings: Settings, every: int) -> None:
        """Passed on, and with an env of its own, so that no step of the training is disturbed."""
        self.envs.append(light_env(settings.game, 1))
        self.evaluation = EvalCallback(
            self.envs[-1],
            eval_freq=every * settings.n_steps,
            n_eval_episodes=EVAL_EPISODES,
            verbose=0,
        )
        self.callbacks.append(self.evaluation)

    def before_iteration(self) -> None:
        """Envs begin anew by themselves, when a match is over."""

    def close(self) -> None:
        """End the workers."""
        for env in self.envs:
            env.close()
