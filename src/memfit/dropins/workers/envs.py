"""The envs of one worker, as stable-baselines3 or as Gymnasium steps them."""

from __future__ import annotations

from typing import Any

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


class Envs:
    """Envs of one worker; `last` are observations of those that may be asked for again."""

    def __init__(self, mode: str) -> None:
        self.envs: list[Any] = []
        self.last: dict[int, Any] = {}
        self._mode = mode
        self._known: set[int] = set()

    def add(self, env: Any) -> None:
        if id(env.unwrapped) in self._known:
            raise UsageError(
                "two factories gave the same env object. Let each call of a factory make a new env"
            )
        self._known.add(id(env.unwrapped))
        self.envs.append(env)


class Sb3Envs(Envs):
    """Stepped as stable-baselines3's SubprocVecEnv does: an env that ended is reset at once."""

    def add(self, env: Any) -> None:
        if not isinstance(env, gymnasium.Env):
            from stable_baselines3.common.vec_env.patch_gym import _patch_env

            env = _patch_env(env)
        super().add(env)

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


class GymnasiumEnvs(Envs):
    """Stepped as Gymnasium's vector envs do, in one of their autoreset modes."""

    def __init__(self, mode: str) -> None:
        super().__init__(mode)
        self._over: set[int] = set()

    def step(self, k: int, action: Any) -> Step:
        env = self.envs[k]
        if k in self._over and self._mode == "NextStep":
            obs, info = env.reset()
            reward, terminated, truncated = 0.0, False, False
        elif k in self._over and self._mode == "Disabled":
            raise UsageError(
                "an env was stepped after its episode ended, and autoreset is disabled. Reset "
                'it first: reset(options={"reset_mask": terminations | truncations})'
            )
        else:
            obs, reward, terminated, truncated, info = env.step(action)
        self._over.discard(k)
        over = bool(terminated or truncated)
        if over and self._mode == "SameStep":
            final = {"final_info": info, "final_obs": obs}
            obs, reset_info = env.reset()
            info = {**final, **reset_info}
        elif over:
            self._over.add(k)
        self.last[k] = obs
        return obs, reward, bool(terminated), bool(truncated), (info, None) if info else None

    def reset(self, k: int, seed: int | None, options: Any) -> tuple[Any, Any]:
        self._over.discard(k)
        self.last[k], info = self.envs[k].reset(seed=seed, options=options)
        return self.last[k], info

    def call(self, k: int, what: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        env = self.envs[k]
        if what == "set_attr":
            env.set_wrapper_attr(*args)
            return None
        found = env.get_wrapper_attr(args[0])
        return found(*args[1:], **options) if callable(found) else found


STYLES: dict[str, type[Sb3Envs | GymnasiumEnvs]] = {"sb3": Sb3Envs, "gymnasium": GymnasiumEnvs}


def reward_kind(reward: Any) -> int:
    """How a reward can lie in shared memory without a change of its value or type."""
    kind = _KIND_OF.get(type(reward), REWARD_SENT)
    if kind == _KIND_OF[int] and not -_EXACT <= reward <= _EXACT:
        return REWARD_SENT
    return kind


def _is_wrapped(env: Any, module: str, name: str) -> bool:
    while isinstance(env, gymnasium.Wrapper):
        if any((kind.__module__, kind.__qualname__) == (module, name) for kind in type(env).mro()):
            return True
        env = env.env
    return False
