"""The shipped specs describe the trainings that the system runs."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from importlib import resources
from typing import Any

import numpy as np
import pytest

from memfit.systems.ninja.env import observation_space
from memfit.systems.ninja.settings import EnvironmentConfig, TrainingSettings

SPECS = {
    "ninja.toml": EnvironmentConfig.as_described(),
    "ninja-fit.toml": EnvironmentConfig.for_parallel_training(),
}


def spec(name: str) -> dict[str, Any]:
    return tomllib.loads((resources.files("memfit.specs") / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize(("name", "config"), SPECS.items(), ids=list(SPECS))
def test_a_spec_has_the_spaces_and_knobs_of_its_training(
    name: str, config: EnvironmentConfig
) -> None:
    told = spec(name)
    space = observation_space(config).spaces
    assert told["observation"].keys() == space.keys()
    for part, described in told["observation"].items():
        box: Any = space[part]
        assert tuple(described["shape"]) == box.shape
        assert np.dtype(described["dtype"]) == box.dtype
        for bound, values in (("low", box.low), ("high", box.high)):
            assert bound not in described or (values == described[bound]).all()
    assert told["action"] == {"discrete": 6}
    assert told["env"]["vec"] == "dummy"
    assert told["env"]["episode_steps"] == config.max_steps
    knobs, default = told["knobs"], TrainingSettings()
    assert (knobs["n_steps"], knobs["batch_size"]) == (default.n_steps, default.batch_size)
    assert (knobs["n_epochs"], knobs["total_timesteps"]) == (default.epochs, default.steps)


@pytest.mark.slow
@pytest.mark.truth
@pytest.mark.parametrize("name", SPECS)
def test_a_spec_can_be_planned(name: str) -> None:
    command = [sys.executable, "-m", "memfit", "plan", name, "--set", "n_envs=2"]
    done = subprocess.run(
        [*command, "--limit", "1TiB", "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    planned = json.loads(done.stdout)
    assert planned["fits"] and planned["kind"] == "plan"
    rows = {one["name"] for one in planned["components"]}
    assert {"env.state", "rollout_buffer.observations.global_view"} <= rows
