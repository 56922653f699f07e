"""The same training made to fit: same frames, same samples, same minibatches, less memory."""

from __future__ import annotations

from functools import partial
from typing import Any

from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.vec_env import VecEnv, VecFrameStack, VecMonitor, VecTransposeImage

from memfit.dropins import LightVecEnv, MicroBatchPPO, WindowRolloutBuffer
from memfit.systems.fighter.env import FighterEnv
from memfit.systems.fighter.settings import FRAME_STACK, Game, Settings
from memfit.systems.fighter.training import FighterTraining, checkpoints
from memfit.systems.program import Report

EVAL_EPISODES = 5
BUFFERS: dict[str, type[RolloutBuffer]] = {"frames": WindowRolloutBuffer, "stacks": RolloutBuffer}


def light_env(game: Game, n_envs: int) -> VecEnv:
    """Emulators in light workers, a process each; four frames stacked, channels first.

    What counts episodes and stacks frames is of the library, and stays in the main process: a
    worker loads the emulator and no torch.
    """
    make_env = partial(FighterEnv, game, render_mode="rgb_array")
    workers = LightVecEnv([make_env] * n_envs, workers=n_envs)
    return VecTransposeImage(VecFrameStack(VecMonitor(workers), FRAME_STACK))


class Fitted(FighterTraining):
    """Workers without torch, each frame stored once, minibatches in pieces."""

    def __init__(self, settings: Settings, report: Report = lambda stage, share: None) -> None:
        super().__init__(settings, report)
        self.envs: list[Any] = [light_env(settings.game, settings.n_envs)]
        try:
            self.model = MicroBatchPPO(
                "CnnPolicy",
                self.envs[0],
                micro_batch_size=settings.micro_batch,
                rollout_buffer_class=BUFFERS[settings.storage],
                **self.ppo,
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
