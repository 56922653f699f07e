"""The envs of one worker, as stable-baselines3 or as Gymnasium steps them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import gymnasium
import numpy as np

from memfit.errors import UsageError

# How a reward lies in shared memory: as a float64 that stands for one of these types, or not.
REWARD_TYPES = (np.float64, np.float32, np.int64)
REWARD_SENT = 255
_KIND_OF = {float: 0, np.float64: 0, np.float32: 1, int: 2, np.int64: 2}
_EXACT = 2**53

# Observation, reward, ended or terminated, truncated, and what else there is to say.
Step = tuple[Any, Any, bool, bool, Any]


class Envs(Protocol):
    """What the loop of a worker asks of its envs."""

    envs: list[Any]

    def step(self, k: int, action: Any) -> Step: ...

    def reset(self, k: int, seed: int | None, options: Any) -> tuple[Any, Any]: ...

    def stay(self, k: int) -> Any: ...

    def call(self, k: int, what: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any: ...


class Sb3Envs:
    """Stepped as stable-baselines3's SubprocVecEnv does: an env that ended is reset at once."""

    def __init__(self, factories: list[Callable[[], Any]], mode: str) -> None:
        self.envs = [_gymnasium_env(build()) for build in factories]
        _all_different(self.envs)

    def step(self, k: int, action: Any) -> Step:
        env = self.envs[k]
        obs, reward, terminated, truncated, info = env.step(action)
        done = terminated or truncated
        cut = truncated and not terminated
        info["TimeLimit.truncated"] = cut
        if done:
            info["terminal_observation"] = obs
            obs, reset_info = env.reset()
            return obs, reward, True, False, (info, reset_info)
        if cut is False and len(info) == 1:
            return obs, reward, False, False, None
        return obs, reward, False, False, (info, None)

    def reset(self, k: int, seed: int | None, options: Any) -> tuple[Any, Any]:
        given = {"options": options} if options else {}
        found: tuple[Any, Any] = self.envs[k].reset(seed=seed, **given)
        return found

    def stay(self, k: int) -> Any:
        raise NotImplementedError

    def call(self, k: int, what: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        env = self.envs[k]
        if what == "get_attr":
            return env.get_wrapper_attr(*args)
        if what == "has_attr":
            try:
                env.get_wrapper_attr(*args)
            except AttributeError:
                return False
            return True
        if what == "set_attr":
            return setattr(env, *args)
        if what == "env_method":
            return env.get_wrapper_attr(args[0])(*args[1:], **options)
        if what == "render":
            return env.render()
        return _is_wrapped(env, *args)


class GymnasiumEnvs:
    """Stepped as Gymnasium's vector envs do, in one of their autoreset modes."""

    def __init__(self, factories: list[Callable[[], Any]], mode: str) -> None:
        self.envs = [build() for build in factories]
        _all_different(self.envs)
        self._mode = mode
        self._over = [False] * len(self.envs)
        self._last: list[Any] = [None] * len(self.envs)

    def step(self, k: int, action: Any) -> Step:
        env = self.envs[k]
        if self._over[k] and self._mode == "NextStep":
            obs, info = env.reset()
            reward, terminated, truncated = 0.0, False, False
        elif self._over[k] and self._mode == "Disabled":
            raise UsageError(
                "an env was stepped after its episode ended, and autoreset is disabled. Reset "
                'it first: reset(options={"reset_mask": terminations | truncations})'
            )
        else:
            obs, reward, terminated, truncated, info = env.step(action)
        over = bool(terminated or truncated)
        if over and self._mode == "SameStep":
            final = {"final_info": info, "final_obs": obs}
            obs, reset_info = env.reset()
            info = {**final, **reset_info}
        else:
            self._over[k] = over
        self._last[k] = obs
        return obs, reward, bool(terminated), bool(truncated), (info, None) if info else None

    def reset(self, k: int, seed: int | None, options: Any) -> tuple[Any, Any]:
        self._over[k] = False
        self._last[k], info = self.envs[k].reset(seed=seed, options=options)
        return self._last[k], info

    def stay(self, k: int) -> Any:
        """The observation of an env that is not to be reset."""
        return self._last[k]

    def call(self, k: int, what: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        env = self.envs[k]
        if what == "set_attr":
            env.set_wrapper_attr(*args)
            return None
        found = env.get_wrapper_attr(args[0])
        return found(*args[1:], **options) if callable(found) else found


STYLES: dict[str, Callable[[list[Callable[[], Any]], str], Envs]] = {
    "sb3": Sb3Envs,
    "gymnasium": GymnasiumEnvs,
}


def reward_kind(reward: Any) -> int:
    """How a reward can lie in shared memory without a change of its value or type."""
    kind = _KIND_OF.get(type(reward), REWARD_SENT)
    if kind == _KIND_OF[int] and not -_EXACT <= reward <= _EXACT:
        return REWARD_SENT
    return kind


def _gymnasium_env(env: Any) -> Any:
    if isinstance(env, gymnasium.Env):
        return env
    from stable_baselines3.common.vec_env.patch_gym import _patch_env

    return _patch_env(env)


def _is_wrapped(env: Any, module: str, name: str) -> bool:
    while isinstance(env, gymnasium.Wrapper):
        if any((kind.__module__, kind.__qualname__) == (module, name) for kind in type(env).mro()):
            return True
        env = env.env
    return False


def _all_different(envs: list[Any]) -> None:
    if len({id(env.unwrapped) for env in envs}) != len(envs):
        raise UsageError(
            "two factories gave the same env object. Let each call of a factory make a new env"
        )
