"""The reference systems: each waste that they are described with is found, and none made to fit."""

from __future__ import annotations

from pathlib import Path

import pytest

import memfit
from memfit.api.check import check, check_run
from memfit.units import GIB

SYSTEMS = Path(memfit.__file__).parent / "systems"
SPECS = Path(memfit.__file__).parent / "specs"
DESCRIBED = {
    # A history in the observations that contain it, one for a plot, windows, a rollout that is a
    # list and records gradients, one update over all of it, graphs that are retained.
    "drone": {"MF104", "MF105", "MF115", "MF117", "MF201", "MF202", "MF203"},
    # Workers with all of torch, an evaluation that is never passed on and has the training env, a
    # reset of which the model does not hear.
    "fighter": {"MF006", "MF303", "MF304", "MF307"},
    # A rollout that may never end, a trajectory that is a list, targets that nobody asks.
    "trader": {"MF115", "MF209", "MF309"},
}


@pytest.mark.parametrize("system", DESCRIBED)
def test_what_is_described_is_found_and_nothing_else(system: str) -> None:
    found = check([str(SYSTEMS / system / "described.py")]).findings
    assert {finding.code for finding in found} == DESCRIBED[system]


@pytest.mark.parametrize("system", [*DESCRIBED, "ninja"])
def test_what_is_made_to_fit_has_no_findings(system: str) -> None:
    files = [str(f) for f in (SYSTEMS / system).glob("*.py") if f.name != "described.py"]
    assert files and check(files).findings == ()


@pytest.mark.slow
@pytest.mark.torch
def test_the_drones_spec_says_the_same_as_its_text() -> None:
    described = check_run(str(SPECS / "drone.toml"), limit=8 * GIB)
    assert {f.code for f in described.findings} >= {"MF201", "MF202", "MF203"}
    advice = {a.code: a for a in described.advice}
    assert advice["MF202"].safe and advice["MF202"].saves_bytes > 1024 * 100 * 34_000
    assert [a.saves_bytes for a in described.advice] == sorted(
        (a.saves_bytes for a in described.advice), reverse=True
    )
