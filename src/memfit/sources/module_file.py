"""Finds the file of a module that is run with -m, importing nothing."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path


def module_file(name: str, path: Sequence[str]) -> Path | None:
    """The file that `python -m name` runs, None where there is none on the path."""
    spec: ModuleSpec | None = None
    where: Sequence[str] | None = path
    full = ""
    for part in name.split("."):
        full = f"{full}.{part}" if full else part
        if where is None or (spec := PathFinder.find_spec(full, list(where))) is None:
            return None
        where = spec.submodule_search_locations
    if where is not None:  # of a package, its __main__ is run
        return module_file(f"{name}.__main__", path) if not name.endswith("__main__") else None
    return Path(spec.origin) if spec is not None and spec.origin else None
