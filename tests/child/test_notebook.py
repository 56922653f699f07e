"""A notebook runs cell by cell, without what is for Jupyter or the shell."""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path

import pytest

from memfit.child.notebook import cells_of, run_notebook

CELLS = [
    {"cell_type": "markdown", "source": "# Title"},
    {"cell_type": "code", "source": ["%matplotlib inline\n", "x = 1\n", "if x:\n", "    !ls\n"]},
    {"cell_type": "code", "source": "%%bash\nls"},
    {"cell_type": "code", "source": "x += 1\nassert x == 3, x"},
]


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    file = tmp_path / "train.ipynb"
    file.write_text(json.dumps({"cells": CELLS}))
    return file


def test_cells_of_code_are_read_without_magic(notebook: Path) -> None:
    assert list(cells_of(notebook)) == [
        (2, "pass\nx = 1\nif x:\n    pass\n"),
        (4, "x += 1\nassert x == 3, x\n"),
    ]


def test_they_run_in_one_main_module_and_a_traceback_names_the_cell(
    notebook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(AssertionError) as failed:
        run_notebook(notebook, {})
    told = "".join(traceback.format_exception(failed.value))
    assert "(cell 4)" in told and "assert x == 3, x" in told
