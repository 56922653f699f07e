"""What a run imports and holds before it learns, of modules and arrays of known size."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MIB = 2**20


def told(folder: Path, program: str) -> Any:
    file = folder / "train.py"
    file.write_text(program)
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=60, check=True
    )
    return json.loads(done.stdout)


IMPORTING = """
import json
from memfit.child.import_steps import ImportSteps
steps = ImportSteps()
steps.install()
import outer
try:
    import broken
except ValueError:
    pass
import package.part
print(json.dumps(steps.bytes))
"""


def test_a_module_has_what_it_added_less_what_it_imported(tmp_path: Path) -> None:
    """`outer` holds 16 MiB and imports `inner` with 32, `broken` fails after 8, a part has 4."""
    held = "held = bytearray(b'x') * ({} << 20)\n"
    (tmp_path / "inner.py").write_text(held.format(32))
    (tmp_path / "outer.py").write_text(held.format(16) + "import inner")
    (tmp_path / "broken.py").write_text(held.format(8) + "raise ValueError")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "part.py").write_text(held.format(4))
    found = told(tmp_path, IMPORTING)
    assert found["outer"]["outer"] == pytest.approx(16 * MIB, abs=MIB)
    assert found["outer"]["inner"] == pytest.approx(32 * MIB, abs=MIB)
    assert found["package.part"]["package.part"] == pytest.approx(4 * MIB, abs=MIB)
    assert "inner" not in found


HOLDING = """
import json, os, sys
import numpy as np
from memfit.child.held_arrays import held_arrays

class Env:
    def __init__(self): self.table = np.ones(30 * 2**20, np.uint8)
    def reset(self): pass
    def step(self): pass
class Model:
    def __init__(self): self.weights = np.ones(20 * 2**20, np.uint8)
class Data:
    def __init__(self): self.prices = {"EUR": np.ones(2 * 2**20)}

def main():
    data, env, model = Data(), Env(), Model()
    reserved = np.zeros(40 * 2**20, np.uint8)
    again = data.prices["EUR"][5:]
    small = np.ones(1000)
    return held_arrays(sys._getframe(), os.path.abspath(__file__), model)

shared = np.ones((3, 2**20), np.uint8)
print(json.dumps(main()))
"""


def test_large_arrays_are_told_by_their_paths_each_once(tmp_path: Path) -> None:
    """The model's and the env's have rows of their own; what is only reserved is not there."""
    found = told(tmp_path, HOLDING)
    assert sorted(found.values()) == pytest.approx([3 * MIB, 16 * MIB], rel=0.01)
    assert "shared" in found
    assert found.keys() & {"again", "data.prices['EUR']"}
