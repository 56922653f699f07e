"""A vector env of stable-baselines3 with light workers.

    make_vec_env("CartPole-v1", n_envs=32, vec_env_cls=LightVecEnv)

Several envs share a worker, all workers share what they import, and observations lie in memory
that the training reads without a copy. Everything else is as with SubprocVecEnv.
"""

from __future__ import annotations

import warnings
import weakref
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
from memfit.dropins.workers.figures import Figures
from memfit.dropins.workers.pool import WorkerPool
from memfit.errors import TargetFailed, UsageError

TIMEOUT = 600.0


class LightVecEnv(Figures, VecEnv):
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
        self._pool = WorkerPool(
            env_fns, style="sb3", workers=workers, preload=preload, timeout=timeout
        )
        self._end = weakref.finalize(self, self._pool.stop, 2.0)
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
        notes = iter(self._pool.stepped())
        slot, self._slot = self._slot, None
        slots = self._pool.slots
        flags = slots.flags.tolist()
        infos: list[dict[str, Any]] = []
        others: list[list[Any]] = []
        sent: dict[int, Any] = {}
        for i, (_, _, _, told) in enumerate(flags):
            info, parts = None, []
            if told:
                both, reward, parts = next(notes)
                if flags[i][2] == REWARD_SENT:
                    sent[i] = reward
                if both is not None:
                    info = both[0]
                    if both[1] is not None:
                        self.reset_infos[i] = both[1]
            infos.append({"TimeLimit.truncated": False} if info is None else info)
            others.append(parts)
        rewards = _rewards(slots.rewards, [found[2] for found in flags], sent)
        dones = slots.flags[:, 0].astype(np.bool_)
        return slots.take(slot, others, np.stack), rewards, dones, infos

    def reset(self) -> VecEnvObs:
        """Reset all envs with the seeds and options that were set before."""
        self._open()
        self._slot = None
        slot = self._pool.reset(self._seeds, self._options)
        found = self._pool.was_reset()
        self.reset_infos = [info for info, _ in found]
        self._reset_seeds()
        self._reset_options()
        obs: VecEnvObs = self._pool.slots.take(slot, [others for _, others in found], np.stack)
        return obs

    def close(self) -> None:
        """Close all envs and end their workers."""
        wrong = self._pool.close()
        self._end.detach()
        if wrong:
            raise TargetFailed(
                f"an env raised while it was closed:\n{wrong}\nMend its close()", output=wrong
            )

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
        chosen = [range(self._pool.n_envs)[i] for i in self._chosen(indices)]
        return self._pool.call(what, chosen, [args] * len(chosen), options)

    def _chosen(self, indices: VecEnvIndices) -> Iterable[int]:
        if indices is None:
            return range(self._pool.n_envs)
        return [indices] if isinstance(indices, int) else indices

    def _open(self) -> None:
        if self._pool.stopped:
            raise UsageError("this vector env is closed. Make a new one")

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
