"""A vector env of Gymnasium with light workers.

    LightVectorEnv([lambda: gymnasium.make("CartPole-v1") for _ in range(32)])

The workers are those of LightVecEnv. What it gives is what AsyncVectorEnv and SyncVectorEnv
give, in all autoreset modes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_differing_spaces, batch_space, iterate
from numpy.typing import NDArray

from memfit.dropins.workers.layout import ARRAYS
from memfit.dropins.workers.light import TIMEOUT, LightWorkers
from memfit.dropins.workers.pool import WorkerPool
from memfit.errors import UsageError

_OWN_WAYS = ("reset", "step", "close")
Step = tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class LightVectorEnv(LightWorkers, VectorEnv[Any, Any, NDArray[Any]]):
    """Steps envs in light worker processes.

    `workers`, `preload` and `timeout` are as for LightVecEnv, the others as for AsyncVectorEnv.
    """

    _closed_error = ClosedEnvironmentError

    def __init__(
        self,
        env_fns: Sequence[Callable[[], gymnasium.Env[Any, Any]]],
        *,
        workers: int | None = None,
        preload: Iterable[str] = (),
        timeout: float | None = TIMEOUT,
        observation_mode: str | tuple[spaces.Space[Any], spaces.Space[Any]] = "same",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    ) -> None:
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self._own(
            WorkerPool(
                env_fns,
                style="gymnasium",
                mode=self.autoreset_mode.value,
                workers=workers,
                preload=preload,
                timeout=timeout,
            )
        )
        self._waiting: str | None = None
        self._slot = 0
        self.num_envs = self._pool.n_envs
        self.metadata = {**self._pool.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = self._pool.render_mode
        self.single_action_space = self._pool.action_space
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        try:
            self._batch_observations(observation_mode)
        except BaseException:
            self.close()
            raise

    def _batch_observations(self, mode: Any) -> None:
        first = self._pool.observation_space
        if isinstance(mode, tuple):
            self.observation_space, self.single_observation_space = mode
            return
        self.single_observation_space = first
        every = [observation for observation, _ in self._pool.spaces]
        if mode == "different":
            self.observation_space = batch_differing_spaces(every)
        elif mode == "same":
            for i, obs in enumerate(every):
                if obs is not every[i - 1] and obs != first:
                    raise UsageError(
                        f"the observation_space of env {i} is {obs}, that of env 0 {first}. If "
                        "that is meant, give observation_mode='different'"
                    )
            self.observation_space = batch_space(first, self.num_envs)
        else:
            raise UsageError(
                f"observation_mode={mode!r} is not known. Give 'same', 'different' or a pair of "
                "spaces"
            )

    @property
    def np_random_seed(self) -> Any:
        return self.get_attr("np_random_seed")

    @property  # type: ignore[misc]
    def np_random(self) -> Any:
        return self.get_attr("np_random")

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Reset all envs, or those of `options["reset_mask"]`."""
        self._open()
        self._waiting = None
        self.reset_async(seed=seed, options=options)
        return self.reset_wait()

    def reset_async(
        self,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        self._begin("reset")
        count = self.num_envs
        if seed is None:
            seed = [None] * count
        elif isinstance(seed, int | np.integer):
            seed = [int(seed) + i for i in range(count)]
        if len(seed) != count:
            raise ValueError(f"{len(seed)} seeds for {count} envs. Give one seed for each env")
        mask = None
        if options is not None and "reset_mask" in options:
            mask = _checked_mask(options.pop("reset_mask"), count)
        self._slot = self._pool.reset(seed, [options] * count, mask)
        self._waiting = "reset"

    def reset_wait(self) -> tuple[Any, dict[str, Any]]:
        self._await("reset")
        said, others = self._pool.was_reset()
        self._waiting = None
        infos: dict[str, Any] = {}
        for i, info in enumerate(said):
            infos = self._add_info(infos, info, i)
        return self._pool.slots.take(self._slot, others, tuple), infos

    def step(self, actions: Any) -> Step:
        """Step all envs: observations, rewards, terminations, truncations, infos."""
        self.step_async(actions)
        return self.step_wait()

    def step_async(self, actions: Any) -> None:
        self._begin("step")
        plain = isinstance(actions, np.ndarray) and isinstance(self.single_action_space, ARRAYS)
        given = actions if plain else list(iterate(self.action_space, actions))
        if len(given) != self.num_envs:
            raise ValueError(
                f"{len(given)} actions for {self.num_envs} envs. Give one action for each env"
            )
        self._slot = self._pool.step(given)
        self._waiting = "step"

    def step_wait(self) -> Step:
        self._await("step")
        said, others, sent = self._pool.stepped()
        self._waiting = None
        slots = self._pool.slots
        rewards = slots.rewards.copy()
        for i, reward in sent.items():
            rewards[i] = reward
        infos: dict[str, Any] = {}
        for i, told in enumerate(said):
            if told is not None:
                infos = self._add_info(infos, told[0], i)
        ended, cut = slots.flags[:, :2].T.astype(np.bool_)
        return slots.take(self._slot, others, tuple), rewards, ended.copy(), cut.copy(), infos

    def render(self) -> Any:
        return self.call("render")

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of every env, or read an attribute."""
        self.call_async(name, *args, **kwargs)
        return self.call_wait()

    def call_async(self, name: str, /, *args: Any, **kwargs: Any) -> None:
        self._begin("call")
        if name in _OWN_WAYS:
            raise ValueError(f"call() does not {name} envs. Use {name}() of the vector env")
        everyone = range(self.num_envs)
        self._pool.ask_call("call", everyone, [(name, *args)] * self.num_envs, kwargs)
        self._waiting = "call"

    def call_wait(self) -> tuple[Any, ...]:
        self._await("call")
        self._waiting = None
        return tuple(self._pool.called(range(self.num_envs)))

    def get_attr(self, name: str) -> tuple[Any, ...]:
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute in every env: one value for all, or a list of one each."""
        self._begin("set_attr")
        if not isinstance(values, (list, tuple)):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise ValueError(f"{len(values)} values for {self.num_envs} envs. Give one for each")
        given = [(name, value) for value in values]
        self._pool.call("set_attr", range(self.num_envs), given, {})

    def close_extras(self, timeout: float | None = None, terminate: bool = False) -> None:
        """End the workers; `terminate` does not wait for their envs to close."""
        self.closed = True
        if terminate or timeout is not None:
            self._ended(self._pool.stop(0.0 if terminate else timeout))
        else:
            self._ended(self._pool.close())

    def _begin(self, what: str) -> None:
        self._open()
        if self._waiting is not None and not self._pool.torn:
            raise AlreadyPendingCallError(
                f"{what} was called while a {self._waiting} goes on. Call "
                f"{self._waiting}_wait() first",
                self._waiting,
            )

    def _await(self, what: str) -> None:
        self._open()
        if self._waiting != what:
            raise NoAsyncCallError(f"no {what} was begun. Call {what}_async() first", what)


def _checked_mask(mask: Any, count: int) -> list[bool]:
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
        raise TypeError("reset_mask is no array of bools. Give np.array([True, False, ...])")
    if mask.shape != (count,) or not mask.any():
        raise ValueError(f"reset_mask must have {count} bools, one of them true. Give such one")
    found: list[bool] = mask.tolist()
    return found
