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
        self.run = name == "__main__" or (
            type(file) is str
            and (is_run_file(file) or name.startswith(_TRAININGS))
            and not name.startswith(_OURS)
        )
        self.package = name.partition(".")[0] if self.run or _third_party(file) else PYTHON
        if name.startswith(_OURS):
            self.package = "memfit"


def is_run_file(file: str) -> bool:
    """Whether code in this file was written for the run: not installed, not Python's own."""
    return not file.startswith(("<frozen", _STANDARD)) and not any(p in file for p in _INSTALLED)


def _third_party(file: object) -> bool:
    return type(file) is str and any(part in file for part in _INSTALLED)


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
