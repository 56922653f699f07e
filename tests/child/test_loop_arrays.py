"""What a loop's variables hold is found in a fork as it is here."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from memfit.child.loop_arrays import looked_at_here, looked_at_in_a_fork

MIB = 2**20


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    return module


def test_arrays_are_found_by_name_with_what_is_resident(main: ModuleType) -> None:
    main.obs = np.ones((4, MIB), np.float32)  # type: ignore[attr-defined]
    lazy = np.zeros(64 * MIB, np.uint8)
    lazy[: 8 * MIB] = 1
    main.rb = lazy  # type: ignore[attr-defined]
    for look in (looked_at_here, looked_at_in_a_fork):
        rows = {row.path: row for row in look()}
        assert rows["obs"].bytes == 16 * MIB and rows["obs"].shape == (4, MIB)
        assert rows["obs"].resident >= 15 * MIB
        assert rows["rb"].bytes == 64 * MIB and rows["rb"].resident <= 10 * MIB


class TensorDict:
    """Has a replay that is mapped from a file, as one of the tensordict package."""

    def __init__(self, file: Path) -> None:
        replay = np.memmap(file, np.uint8, "w+", shape=(64 * MIB,))
        replay[: 8 * MIB] = 1
        self._tensordict = {"observation": replay}


def test_what_is_mapped_from_a_file_is_as_resident_to_a_fork(
    main: ModuleType, tmp_path: Path
) -> None:
    main.rb = TensorDict(tmp_path / "replay")  # type: ignore[attr-defined]
    for look in (looked_at_here, looked_at_in_a_fork):
        found = next(row for row in look() if row.path == "rb['observation']")
        assert found.mapped and found.bytes == 64 * MIB
        assert 8 * MIB <= found.resident <= 12 * MIB


def test_variables_of_running_functions_are_found(main: ModuleType) -> None:
    minibatch = np.ones(3 * MIB, np.uint8)
    rows = {row.path: row for row in looked_at_in_a_fork()}
    assert any(path.endswith(".minibatch") for path in rows)
    assert minibatch.nbytes == 3 * MIB
