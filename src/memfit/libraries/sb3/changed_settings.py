"""Other settings for a script than it has itself, put in as it builds its model.

The constructors of stable-baselines3's algorithms get the changed values in place of the script's
own; vector envs get more or fewer of the same envs. What a script builds in another way cannot be
changed so, and is told when it begins to learn.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

Argument = Callable[[str, Any], Any]

N_ENVS = "n_envs"
CHANGEABLE = (
    *("n_steps", "batch_size", "n_epochs"),
    *("buffer_size", "learning_starts", "gradient_steps"),
)
_VEC_ENVS = {
    "stable_baselines3.common.vec_env.dummy_vec_env": "DummyVecEnv",
    "stable_baselines3.common.vec_env.subproc_vec_env": "SubprocVecEnv",
}


def changing(
    knobs: Mapping[str, int], argument: Argument | None = None
) -> dict[str, Callable[[ModuleType], None]]:
    """Hooks, by module, that make a run have these settings.

    `argument` gives algorithms other arguments: it gets a name and the value given, None for none.
    """
    hooks = {}
    if knobs or argument is not None:
        hooks["stable_baselines3.common.base_class"] = _constructors(knobs, argument)
    if N_ENVS in knobs:
        hooks |= {module: _vec_env(name, knobs[N_ENVS]) for module, name in _VEC_ENVS.items()}
    return hooks


def settings_of(model: Any) -> dict[str, int]:
    """The settings of a model that can be changed, with the values that it has."""
    names = [N_ENVS, *(n for n in CHANGEABLE if isinstance(getattr(model, n, None), int))]
    return {name: int(getattr(model, name)) for name in names}


def _constructors(
    knobs: Mapping[str, int], argument: Argument | None
) -> Callable[[ModuleType], None]:
    """Every algorithm whose class is made from now on takes these values."""

    def hook(module: ModuleType) -> None:
        def changed(cls: Any, /, **options: Any) -> None:
            super(module.BaseAlgorithm, cls).__init_subclass__(**options)
            if "__init__" in vars(cls):
                cls.__init__ = _with(knobs, argument, cls.__init__)

        module.BaseAlgorithm.__init_subclass__ = classmethod(changed)

    return hook


def _with(
    knobs: Mapping[str, int], argument: Argument | None, init: Callable[..., None]
) -> Callable[..., None]:
    signature = inspect.signature(init)

    @functools.wraps(init)
    def changed(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **kwargs)
        own = {n: v for n, v in knobs.items() if n in signature.parameters and n in CHANGEABLE}
        bound.arguments.update(own)
        for name in signature.parameters:
            found = argument(name, bound.arguments.get(name)) if argument is not None else None
            if found is not None:
                bound.arguments[name] = found
        if N_ENVS in knobs and bound.arguments.get("env") is not None:
            bound.arguments["env"] = _several(bound.arguments["env"], knobs[N_ENVS])
        init(*bound.args, **bound.kwargs)

    return changed


def _several(env: Any, count: int) -> Any:
    """A vector of envs where a script gives the name of one, or one that it made."""
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

    if isinstance(env, VecEnv) or count == 1:
        return env
    if isinstance(env, str):
        return make_vec_env(env, n_envs=count)
    copies = [env, *(copy.deepcopy(env) for _ in range(count - 1))]
    return DummyVecEnv([functools.partial(Monitor, one) for one in copies])


def _vec_env(name: str, count: int) -> Callable[[ModuleType], None]:
    """Vectors of several envs get so many; one env alone may be there to evaluate."""

    def hook(module: ModuleType) -> None:
        kind = getattr(module, name)
        build = kind.__init__

        def init(self: Any, env_fns: list[Any], *args: Any, **kwargs: Any) -> None:
            if len(env_fns) > 1:
                env_fns = [env_fns[i % len(env_fns)] for i in range(count)]
            build(self, env_fns, *args, **kwargs)

        kind.__init__ = init

    return hook
