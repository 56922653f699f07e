"""A few of the faults, and a part of what is generated, of `make test-harm`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harm import fuzz
from tests.harm.scene import alone, wrong
from tests.harm.table import FAULTS, played
from tests.harm.training import CODE

KIND = "numpy"  # begins at once; `make test-harm` has torch and stable-baselines3
QUICK = [name for name, fault in FAULTS.items() if fault.quick]


@pytest.fixture(scope="module")
def digests() -> list[str]:
    """The parameters of the training as they are without memfit."""
    found = alone(KIND, "-")
    assert found["code"] == CODE and len(found["digests"]) == 1
    return list(found["digests"])


def test_there_are_enough_faults() -> None:
    assert len(FAULTS) >= 40 and QUICK


@pytest.mark.parametrize("name", QUICK)
def test_a_training_ends_as_without_memfit(name: str, digests: list[str]) -> None:
    found = played(name, KIND, held=1.0)
    if "not_here" in found:
        pytest.skip(found["not_here"])
    assert wrong(found, FAULTS[name], digests) == []


@pytest.mark.torch
def test_fuzzed_specs_are_taken_as_written_or_refused(tmp_path: Path) -> None:
    outcomes = fuzz.specs(range(60), tmp_path)
    assert outcomes["taken"] > 3 and outcomes["refused"] > 30


def test_fuzzed_command_lines_end_in_words(tmp_path: Path) -> None:
    assert fuzz.command_lines(range(40), tmp_path)[2] > 20
