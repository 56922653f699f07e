"""Runs a notebook cell by cell, as Jupyter does with "run all", without its magic commands."""

from __future__ import annotations

import json
import linecache
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

from memfit.libraries.loop.main_code import main_code

_MAGIC = ("%", "!", "?")


def run_notebook(path: Path, knobs: Mapping[str, int]) -> None:
    """All cells of code, one after the other, in a main module of their own.

    Settings have the values of `knobs` in place of their own.
    """
    main = ModuleType("__main__")
    main.__file__ = str(path)
    sys.modules["__main__"] = main
    sys.path.insert(0, str(path.resolve().parent))
    for number, text in cells_of(path):
        name = f"{path} (cell {number})"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        exec(main_code(text, name, knobs), vars(main))


def cells_of(path: Path) -> Iterator[tuple[int, str]]:
    """The number and the code of each cell; lines for Jupyter itself and the shell do nothing."""
    cells = json.loads(path.read_text(encoding="utf-8")).get("cells", [])
    for number, cell in enumerate(cells, start=1):
        source = cell.get("source", "")
        text = source if isinstance(source, str) else "".join(source)
        if cell.get("cell_type") == "code" and not text.lstrip().startswith("%%"):
            lines = text.splitlines()
            yield number, "\n".join(_without_magic(line) for line in lines) + "\n"


def _without_magic(line: str) -> str:
    bare = line.lstrip()
    if not bare.startswith(_MAGIC):
        return line
    return f"{line[: len(line) - len(bare)]}pass"
