"""The specs describe the system as it is, and can be planned."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import memfit
from memfit.systems.fighter import settings
from memfit.systems.fighter.settings import ACTIONS, FRAMES, Settings

SPECS = Path(memfit.__file__).parent / "specs"


def spec(name: str) -> dict[str, Any]:
    return tomllib.loads((SPECS / name).read_text(encoding="utf-8"))


def test_the_spec_is_the_system_as_described() -> None:
    described, default = spec("fighter.toml"), Settings()
    assert described["knobs"] == {
        "n_envs": default.n_envs,
        "n_steps": default.n_steps,
        "batch_size": default.minibatch,
        "n_epochs": default.n_epochs,
        "total_timesteps": default.steps,
    }
    assert tuple(described["observation"]["shape"]) == FRAMES["colour"]
    assert described["action"] == {"discrete": len(ACTIONS)}
    assert described["env"]["frame_stack"] == settings.FRAME_STACK
    assert [c["every"] for c in described["callback"]] == [settings.SAVE_FREQ]


def test_the_other_spec_is_the_system_made_to_fit() -> None:
    fitted, default = spec("fighter-fit.toml"), Settings()
    assert fitted["knobs"] == {
        "n_envs": default.n_envs,
        "n_steps": default.n_steps,
        "micro_batch": default.micro_batch,
    }


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("name", "small"), [("fighter.toml", "batch_size=16"), ("fighter-fit.toml", "micro_batch=16")]
)
def test_the_specs_can_be_planned(name: str, small: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "memfit", "plan", name, "--format", "json"),
            *("--set", "n_steps=64", "--set", small),
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
    )
    assert done.returncode in (0, 3), done.stderr
    plan = json.loads(done.stdout)
    assert plan["peak_bytes"] > 64 * 2 * 69_120
    names = {component["name"] for component in plan["components"]}
    wanted = {"fighter.toml": "rollout_buffer.observations", "fighter-fit.toml": "rollout.frames"}
    assert wanted[name] in names
