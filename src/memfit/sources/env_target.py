"""From a target of `memfit profile` to how its environments are made; nothing of it is imported."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from memfit.errors import UsageError

GYM, FACTORY = "gym", "factory"
_ID = re.compile(r"(?:[\w.]+:)?(?:[\w-]+/)?[\w-]+-v\d+")


def env_target(target: str | Callable[..., Any], systems: Mapping[str, str]) -> tuple[str, str]:
    """What to make, and in which way: by Gymnasium's id, or by a class or function of a module."""
    if not isinstance(target, str):
        return _importable(target), FACTORY
    if target in systems:
        return systems[target], FACTORY
    if _ID.fullmatch(target):
        return target, GYM
    module, colon, name = target.partition(":")
    if colon and name.isidentifier() and all(part.isidentifier() for part in module.split(".")):
        return target, FACTORY
    if Path(target).suffix in (".py", ".toml", ".ipynb"):
        raise UsageError(
            f"{target} is a file, and a profile steps an environment: name what makes one, as "
            f"{Path(target).stem}:make_env, or plan the training with `memfit plan {target}`"
        )
    known = ", ".join(sorted(systems))
    raise UsageError(
        f"{target!r} is no environment: give a Gymnasium id (CartPole-v1), "
        f"package.module:make_env, or one of the systems ({known})"
    )


def _importable(made: Any) -> str:
    """The name under which another process finds a class or function."""
    module, name = getattr(made, "__module__", None), getattr(made, "__qualname__", None)
    if not module or not name or module == "__main__" or not str(name).isidentifier():
        raise UsageError(
            "an environment is made in a child process, which must find its class or function by "
            "name: put it at the top of a module, and give that, or 'package.module:make_env'"
        )
    return f"{module}:{name}"
