"""Notebooks without Jupyter: one that is made for the benchmark, and running one cell by cell.

``python -m benchmarks.loops.notebook FILE`` runs the code cells of a notebook one after the other
in the namespace of one module, as a kernel would, but without a kernel's own libraries.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path

_MAGIC = re.compile(r"^[%!].*$", re.MULTILINE)


def written(cells: Iterable[tuple[str, str]]) -> str:
    """The text of a notebook, from pairs of a kind (code, markdown) and a source."""
    shown = []
    for number, (kind, source) in enumerate(cells, 1):
        lines = source.strip("\n").splitlines(keepends=True)
        code: dict[str, object] = {"execution_count": None, "outputs": []} if kind == "code" else {}
        cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": lines, **code}
        shown.append(dict(sorted(cell.items())))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = {
        "cells": shown,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(book, indent=1) + "\n"


def code_cells(path: Path) -> list[str]:
    """The sources of a notebook's code cells, without what only a kernel understands."""
    cells = json.loads(path.read_text())["cells"]
    sources = ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return [_MAGIC.sub("", source) for source in sources]


def run_cells(path: Path) -> None:
    """Run the cells in one namespace."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for number, source in enumerate(code_cells(path), 1):
        exec(compile(source, f"{path.name}[{number}]", "exec"), namespace)


if __name__ == "__main__":
    run_cells(Path(sys.argv[1]))
