"""Other parts for a script than it has itself, put in as it builds its envs and its model.

Parts of `memfit.dropins` take the place of the library's own: buffers, vector envs, PPO. A script
that chose another part itself keeps it, and what could not be put in is told when it begins to
learn.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

from memfit.libraries.sb3.facts import is_light
from memfit.model.changes import ALGORITHM, OBSERVATION, REPLAY, ROLLOUT, WORKERS, Changes
from memfit.model.job import Job, Look
from memfit.model.training import ModuleHook

FORK, LIGHT, NARROW = "fork", "LightVecEnv", "NarrowObservation"
WINDOWED = "Windowed"  # all of memfit's buffers, of which some are for Dict observations
SEED = 0  # of a run that has none and is compared with another
_VEC_ENVS = "stable_baselines3.common.vec_env"
_OWN_BUFFERS = ("stable_baselines3.common.buffers", "sb3_contrib.common.maskable.buffers")


class ChangedParts:
    """The parts and arguments that a job's run gets in place of its own."""

    def __init__(self, job: Job) -> None:
        self.changes = job.changes
        self.seeded = job.look is Look.TRAIN

    @property
    def wanted(self) -> bool:
        """Whether algorithms get other arguments."""
        return self.seeded or bool(self.changes.parts or self.changes.options)

    def argument(self, name: str, given: Any) -> Any:
        """What an algorithm gets for an argument, None where it keeps what it was given."""
        parts, options = self.changes.parts, self.changes.options
        if name == "seed" and given is None and self.seeded:
            return SEED
        if name in (ROLLOUT, REPLAY) and name in parts and _is_own(given):
            return _dropin(parts[name])
        if name == "env" and OBSERVATION in parts:
            return _narrowed(given)
        if name in options:
            new = options[name]
            return {**(given or {}), **new} if isinstance(new, Mapping) else new
        return None

    def hooks(self) -> dict[str, ModuleHook]:
        """By module, what to change when it is imported."""
        parts, found = self.changes.parts, dict[str, ModuleHook]()
        if ALGORITHM in parts:
            found["stable_baselines3"] = self._put_algorithm
        if WORKERS in parts:
            found[_VEC_ENVS] = _put_light if parts[WORKERS] == LIGHT else _put_fork
        if OBSERVATION in parts:
            found |= {
                f"{_VEC_ENVS}.dummy_vec_env": lambda module: _narrow_all(module.DummyVecEnv),
                f"{_VEC_ENVS}.subproc_vec_env": lambda module: _narrow_all(module.SubprocVecEnv),
            }
        if self.changes.once:
            names = tuple(self.changes.once)
            found[f"{_VEC_ENVS}.dummy_vec_env"] = functools.partial(_build_once, names=names)
        return found

    def _put_algorithm(self, module: ModuleType) -> None:
        """MicroBatchPPO in the place of PPO, wherever it is imported from."""
        base: Any = _dropin(self.changes.parts[ALGORITHM])
        pieces = self.changes.options["micro_batch_size"]

        def init(own: Any, *args: Any, **options: Any) -> None:
            base.__init__(own, *args, micro_batch_size=pieces, **options)

        made = type(base.__name__, (base,), {"__init__": init, "__module__": base.__module__})
        for name in ("stable_baselines3", "stable_baselines3.ppo", "stable_baselines3.ppo.ppo"):
            sys.modules[name].PPO = made  # type: ignore[attr-defined]


def lacking(model: Any, changes: Changes) -> list[str]:
    """Which of these changes a model does not have."""
    from memfit.dropins.sharing.once import things_built

    never = [name for name in changes.once if not things_built(name)]
    return [
        *_lacking_parts(model, changes.parts),
        *_lacking_options(model, changes.options),
        *never,
    ]


def _lacking_parts(model: Any, parts: Mapping[str, str]) -> Iterator[str]:
    env = model.env.unwrapped
    for place, part in parts.items():
        match place:
            case "rollout_buffer_class":
                there = _has_kind(getattr(model, "rollout_buffer", None), WINDOWED)
            case "replay_buffer_class":
                there = _has_kind(getattr(model, "replay_buffer", None), WINDOWED)
            case "vec_env_cls" if part == FORK:
                there = getattr(env, "memfit_start_method", "") == FORK
            case "vec_env_cls":
                there = is_light(env)
            case "algorithm":
                there = _has_kind(model, part)
            case _:
                there = not _has_float64(model.observation_space)
        if not there:
            yield place


def _lacking_options(model: Any, options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        own = getattr(model, name, None)
        if isinstance(value, Mapping):
            if not (isinstance(own, Mapping) and value.items() <= own.items()):
                yield name
        elif own != value:
            yield name


def _has_kind(thing: Any, name: str) -> bool:
    return any(kind.__name__ == name for kind in type(thing).__mro__)


def _has_float64(space: Any) -> bool:
    inner = getattr(space, "spaces", None)
    parts = inner.values() if isinstance(inner, Mapping) else [space]
    return any(str(getattr(part, "dtype", "")) == "float64" for part in parts)


def _is_own(given: Any) -> bool:
    """Whether a buffer's class is the library's, or none was given."""
    return given is None or getattr(given, "__module__", "") in _OWN_BUFFERS


def _dropin(name: str) -> Any:
    import memfit.dropins

    return getattr(memfit.dropins, name)


def _put_light(module: Any) -> None:
    """LightVecEnv in the place of SubprocVecEnv; it has one way to start workers."""
    base: Any = _dropin(LIGHT)

    def init(own: Any, env_fns: Any, start_method: str | None = None) -> None:
        base.__init__(own, env_fns)

    made = type(base.__name__, (base,), {"__init__": init, "__module__": base.__module__})
    module.SubprocVecEnv = module.subproc_vec_env.SubprocVecEnv = made


def _put_fork(module: Any) -> None:
    build = module.SubprocVecEnv.__init__

    def init(own: Any, env_fns: Any, start_method: str | None = None) -> None:
        build(own, env_fns, start_method=FORK)

    module.SubprocVecEnv.__init__ = init


def _narrow_all(kind: Any) -> None:
    """Envs of a vector give float32 where they gave float64."""
    build = kind.__init__

    def init(own: Any, env_fns: Any, *args: Any, **options: Any) -> None:
        build(own, [functools.partial(_made_narrow, make) for make in env_fns], *args, **options)

    kind.__init__ = init


def _build_once(module: Any, names: Sequence[str]) -> None:
    """Builders build once from where the envs are made: a script has its own by then."""
    kind = module.DummyVecEnv
    build = kind.__init__

    def init(own: Any, env_fns: Any) -> None:
        _dropin("build_once")(*names)
        build(own, env_fns)

    kind.__init__ = init


def _made_narrow(make: Callable[[], Any]) -> Any:
    env = make()
    narrow = _narrowed(env)
    return env if narrow is None else narrow


def _narrowed(env: Any) -> Any:
    """An env with float32 for float64; None for what is no env, or has none."""
    import gymnasium
    import numpy

    if not isinstance(env, gymnasium.Env) or not _has_float64(env.observation_space):
        return None
    return _dropin(NARROW)(env, _float32_of(env.observation_space, numpy), on_loss="round")


def _float32_of(space: Any, numpy: Any) -> Any:
    inner = getattr(space, "spaces", None)
    if not isinstance(inner, Mapping):
        return numpy.float32
    return {key: numpy.float32 for key, part in inner.items() if _has_float64(part)}
