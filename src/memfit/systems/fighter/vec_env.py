"""Workers for stable-baselines3 that do not load it: the emulators alone, one in each process."""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecFrameStack, VecMonitor, VecTransposeImage

from memfit.errors import UsageError
from memfit.systems.fighter import worker
from memfit.systems.fighter.settings import FRAME_STACK, Game


class LightVecEnv(VecEnv):
    """As SubprocVecEnv, with workers that share one loaded emulator and hold no torch."""

    def __init__(self, game: Game, n_envs: int) -> None:
        # The server loads the emulator once; workers are its forks and share those pages.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["memfit.systems.fighter.worker"])
        self.closed = False
        self.waiting = False
        self.remotes: list[Any] = []
        self.processes: list[Any] = []
        try:
            for _ in range(n_envs):
                here, there = context.Pipe()
                process = context.Process(
                    target=worker.serve, args=(there, (here,), game), daemon=True
                )
                self.remotes.append(here)
                with worker.uninterrupted():
                    process.start()
                self.processes.append(process)
                there.close()
            spaces = [self._receive(remote) for remote in self.remotes]
        except BaseException:
            self.close()
            raise
        super().__init__(n_envs, *spaces[0])
        self.reset_infos: list[dict[str, Any]] = [{} for _ in range(n_envs)]

    def _receive(self, remote: Any) -> Any:
        answer = remote.recv()
        if isinstance(answer, UsageError):
            raise answer
        return answer

    def step_async(self, actions: Any) -> None:
        """Send each worker its action."""
        for remote, action in zip(self.remotes, actions, strict=True):
            remote.send(("step", int(action)))
        self.waiting = True

    def step_wait(self) -> Any:
        """Gather what came of it."""
        results = [self._receive(remote) for remote in self.remotes]
        self.waiting = False
        frames, rewards, dones, infos, self.reset_infos = map(list, zip(*results, strict=True))
        return np.stack(frames), np.array(rewards, np.float32), np.array(dones), infos

    def reset(self) -> Any:
        """Begin anew in all workers."""
        for remote, seed in zip(self.remotes, self._seeds, strict=True):
            remote.send(("reset", seed))
        results = [self._receive(remote) for remote in self.remotes]
        self._reset_seeds()
        self._reset_options()
        frames, self.reset_infos = map(list, zip(*results, strict=True))
        return np.stack(frames)

    def close(self) -> None:
        """End all workers, and wait until they are gone."""
        if self.closed:
            return
        self.closed = True
        for remote, process in zip(self.remotes, self.processes, strict=False):
            if self.waiting:  # interrupted in the middle of a step: its answer is never read
                process.kill()
            with contextlib.suppress(OSError):
                remote.send(("close", None))
        for process in self.processes:
            process.join()
        for remote in self.remotes:
            remote.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute of some envs."""
        return self._ask(indices, ("get", attr_name))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of some envs."""
        self._ask(indices, ("set", (attr_name, value)))

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of some envs."""
        return self._ask(indices, ("call", (method_name, method_args, method_kwargs)))

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Workers wrap nothing around their envs."""
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[Any]:
        """The screens of all envs."""
        return self.env_method("render")

    def _ask(self, indices: Any, request: tuple[str, Any]) -> list[Any]:
        chosen = [self.remotes[i] for i in self._get_indices(indices)]
        for remote in chosen:
            remote.send(request)
        return [self._receive(remote) for remote in chosen]


def light_env(game: Game, n_envs: int) -> VecEnv:
    """The envs of a training: light workers, four frames stacked, channels first."""
    return VecTransposeImage(VecFrameStack(VecMonitor(LightVecEnv(game, n_envs)), FRAME_STACK))
