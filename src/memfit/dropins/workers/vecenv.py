"""A vector env of stable-baselines3 with light workers.

    make_vec_env("CartPole-v1", n_envs=32, vec_env_cls=LightVecEnv)

Several envs share a worker, all workers share what they import, and observations lie in memory
that the training reads without a copy. Everything else is as with SubprocVecEnv.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env.base_vec_env import (
    VecEnv,
    VecEnvIndices,
    VecEnvObs,
    VecEnvStepReturn,
)

from memfit.dropins.workers.envs import REWARD_SENT, REWARD_TYPES
from memfit.dropins.workers.light import TIMEOUT, LightWorkers
from memfit.dropins.workers.pool import WorkerPool
from memfit.errors import UsageError


class LightVecEnv(LightWorkers, VecEnv):
    """Steps envs in light worker processes.

    `workers` is the number of processes (default: one a processor), `preload` names modules
    that workers share beside those that are found, `timeout` is how many seconds a worker may
    take for an answer before it counts as hung; to start, it has ten minutes at least.
    """

    def __init__(
        self,
        env_fns: list[Callable[[], gymnasium.Env[Any, Any]]],
        *,
        workers: int | None = None,
        preload: Iterable[str] = (),
        timeout: float | None = TIMEOUT,
        start_method: str | None = None,
    ) -> None:
        if start_method is not None:
            raise UsageError("LightVecEnv has one way to start workers. Leave start_method= out")
        self._own(
            WorkerPool(env_fns, style="sb3", workers=workers, preload=preload, timeout=timeout)
        )
        self._slot: int | None = None
        try:
            super().__init__(
                self._pool.n_envs, self._pool.observation_space, self._pool.action_space
            )
        except BaseException:
            self._pool.stop(2.0)
            raise

    @property
    def closed(self) -> bool:
        return self._pool.stopped

    @property
    def waiting(self) -> bool:
        """Whether a step is going on, as SubprocVecEnv says it."""
        return self._slot is not None

    def step_async(self, actions: NDArray[Any]) -> None:
        """Let all envs take a step."""
        self._ready()
        if len(actions) != self.num_envs:
            raise UsageError(
                f"{len(actions)} actions for {self.num_envs} envs. Give one action for each env"
            )
        self._slot = self._pool.step(actions)

    def step_wait(self) -> VecEnvStepReturn:
        """Observations, rewards, whether episodes ended, and infos."""
        if self._slot is None:
            self._open()
            raise UsageError("no step was begun. Call step_async(actions) first")
        said, others, sent = self._pool.stepped()
        slot, self._slot = self._slot, None
        slots = self._pool.slots
        infos: list[dict[str, Any]] = []
        for i, told in enumerate(said):
            info, reset_info = told or ({"TimeLimit.truncated": False}, None)
            infos.append(info)
            if reset_info is not None:
                self.reset_infos[i] = reset_info
        rewards = _rewards(slots.rewards, slots.flags[:, 2].tolist(), sent)
        dones = slots.flags[:, 0].astype(np.bool_)
        return slots.take(slot, others, np.stack), rewards, dones, infos

    def reset(self) -> VecEnvObs:
        """Reset all envs with the seeds and options that were set before."""
        self._open()
        self._slot = None
        slot = self._pool.reset(self._seeds, self._options)
        self.reset_infos, others = self._pool.was_reset()
        self._reset_seeds()
        self._reset_options()
        obs: VecEnvObs = self._pool.slots.take(slot, others, np.stack)
        return obs

    def close(self) -> None:
        """Close all envs and end their workers."""
        self._ended(self._pool.close())

    def get_images(self) -> Sequence[NDArray[Any] | None]:
        """The pictures of all envs."""
        if self.render_mode != "rgb_array":
            warnings.warn(
                f"The render mode is {self.render_mode}, but pictures need `rgb_array`.",
                stacklevel=2,
            )
            return [None] * self.num_envs
        return self._call("render", None)

    def has_attr(self, attr_name: str) -> bool:
        return all(self._call("has_attr", None, attr_name))

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        return self._call("get_attr", indices, attr_name)

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        self._call("set_attr", indices, attr_name, value)

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        return self._call("env_method", indices, method_name, *method_args, **method_kwargs)

    def env_is_wrapped(
        self,
        wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]],
        indices: VecEnvIndices = None,
    ) -> list[bool]:
        # By name: the class itself would bring its module, and all that it imports, to the worker.
        name = (wrapper_class.__module__, wrapper_class.__qualname__)
        return self._call("is_wrapped", indices, *name)

    def _call(self, what: str, indices: VecEnvIndices, *args: Any, **options: Any) -> list[Any]:
        self._ready()
        chosen = [range(self._pool.n_envs)[i] for i in self._get_indices(indices)]
        return self._pool.call(what, chosen, [args] * len(chosen), options)

    def _ready(self) -> None:
        self._open()
        if self._slot is not None and not self._pool.torn:
            raise UsageError("a step is still going on. Call step_wait() first, or reset()")


def _rewards(values: NDArray[np.float64], kinds: list[int], sent: dict[int, Any]) -> NDArray[Any]:
    """As numpy would stack the rewards themselves."""
    if not sent:
        first = kinds[0]
        if kinds.count(first) == len(kinds):
            return values.astype(REWARD_TYPES[first])
        return values.astype(np.result_type(*(REWARD_TYPES[kind] for kind in set(kinds))))
    found = [
        sent[i] if kind == REWARD_SENT else REWARD_TYPES[kind](values[i])
        for i, kind in enumerate(kinds)
    ]
    return np.stack(found)
