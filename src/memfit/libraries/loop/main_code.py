"""The code of a program's own files, with its envs' classes watched and settings changed."""

from __future__ import annotations

import ast
import builtins
import importlib.util
import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType

from memfit.libraries.loop.constants import set_values
from memfit.libraries.loop.seldom import ask_first

WATCHED = "__memfit_watched__"  # the builtin that watches a class, and gives it back


def main_code(text: bytes | str, path: str, knobs: Mapping[str, int] = {}) -> CodeType:
    """A file's code with other values of its constants, and its classes watched if any are.

    What it does every so often asks first.
    """
    tree = ast.parse(text, path)
    if knobs:
        set_values(tree, knobs)
    ask_first(tree, path)
    for node in ast.walk(tree) if hasattr(builtins, WATCHED) else ():
        if isinstance(node, ast.ClassDef) and any(
            isinstance(part, ast.FunctionDef) and part.name == "step" for part in node.body
        ):
            # Only from outside: the class is made as if there were nothing.
            name = ast.copy_location(ast.Name(WATCHED, ast.Load()), node)
            node.decorator_list.insert(0, name)
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


def run_main(path: str, knobs: Mapping[str, int] = {}, spec: ModuleSpec | None = None) -> None:
    """Run a script as the main module, or a module that has a spec, with other settings."""
    code = main_code(Path(path).read_bytes(), path, knobs)
    main = ModuleType("__main__")
    main.__file__ = path
    if spec is not None:
        main.__spec__, main.__package__, main.__loader__ = spec, spec.parent, spec.loader
    sys.modules["__main__"] = main
    exec(code, vars(main))


def main_spec(name: str) -> ModuleSpec | None:
    """The spec of what `python -m name` runs; packages above it are imported, as Python does."""
    spec = importlib.util.find_spec(name)
    is_package = spec is not None and spec.submodule_search_locations is not None
    return importlib.util.find_spec(f"{name}.__main__") if is_package else spec
