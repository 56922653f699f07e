"""Tells which package a module is of, and whether that is the run's own code."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable
from typing import Any

from .object_kinds import variables_of  # noqa: TID252 - also loaded by path, under another name

_STANDARD = f"{os.path.dirname(os.__file__)}/"  # noqa: PTH120
_INSTALLED = ("/site-packages/", "/dist-packages/")
_OURS = ("_memfit_inside", "memfit.inside")
_TRAININGS = "memfit.systems"  # reference trainings, also where memfit is installed
PYTHON = "Python"


class Home:
    """One module."""

    __slots__ = ("module", "name", "package", "run", "variables")

    def __init__(self, name: str, module: Any) -> None:
        self.name = name
        self.module = module
        self.variables: dict[str, Any] = variables_of(module)
        file = self.variables.get("__file__")
        self.run, self.package = owner(name, file if type(file) is str else "")


def owner(name: str, file: str, standard: str = _STANDARD) -> tuple[bool, str]:
    """Whether a module is the run's own, and the package that it is of.

    `standard` is the folder of Python's own modules, with a slash at its end.
    """
    run = name == "__main__" or (
        bool(file)
        and (is_run_file(file, standard) or name.startswith(_TRAININGS))
        and not name.startswith(_OURS)
    )
    if name.startswith(_OURS):
        return run, "memfit"
    installed = any(part in file for part in _INSTALLED)
    return run, name.partition(".")[0] if run or installed else PYTHON


def is_run_file(file: str, standard: str = _STANDARD) -> bool:
    """Whether code in this file was written for the run: not installed, not Python's own."""
    return not file.startswith(("<frozen", standard)) and not any(p in file for p in _INSTALLED)


def homes(rest: Callable[[], None]) -> dict[int, Home]:
    """All loaded modules, by the id of their dictionary."""
    found: dict[int, Home] = {}
    for name, module in list(sys.modules.items()):
        rest()
        if issubclass(type(module), types.ModuleType) and type(name) is str:
            home = Home(name, module)
            known = found.get(id(home.variables))
            if known is None or name == "__main__":
                found[id(home.variables)] = home
    return found
