"""Search spaces of Tune as parameters of a plan."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from memfit.inside.objective import Trial, configuration, planned
from memfit.integrations.ray.tune_space import flat
from tests.integrations.ray.conftest import NEEDS_RAY

# In a process of its own: Ray warns while it is imported.
PROGRAM = """
import json
from ray import tune
from memfit.errors import UsageError
from memfit.integrations.ray.tune_space import parameters_of

space = {
    "steps": tune.randint(64, 4096),
    "by": tune.qrandint(32, 256, 32),
    "logged": tune.lograndint(8, 1025),
    "rate": tune.loguniform(1e-5, 1e-2),
    "noise": tune.randn(0, 1),
    "net": {"width": tune.choice([64, 256]), "kind": tune.grid_search(["a", "b"])},
    "env": "CartPole-v1",
}
varied, constant = parameters_of(space)
refused = []
for odd in (tune.sample_from(lambda spec: 3), object(), tune.choice([object()])):
    try:
        parameters_of({"odd": odd})
    except UsageError as error:
        refused.append(str(error))
print(json.dumps([{name: vars(p) for name, p in varied.items()}, constant, refused]))
"""


def test_nested_settings_are_called_by_their_path() -> None:
    config = {"a": 1, "net": {"width": 2, "deep": {"er": 3}}, "grid": {"grid_search": [1]}}
    assert dict(flat(config)) == {
        "a": 1,
        "net/width": 2,
        "net/deep/er": 3,
        "grid": {"grid_search": [1]},
    }


def test_a_planned_function_gets_a_whole_configuration(capfd: pytest.CaptureFixture[str]) -> None:
    told = {"kind": "int", "low": 64, "high": 4096, "step": 1, "log": False}
    space = {
        "varied": {
            "steps": {**told, "name": "steps"},
            "net/width": {"kind": "categorical", "choices": [16, 64, 32], "name": "net/width"},
        },
        "constant": {"env": "CartPole-v1", "net/depth": 2},
    }
    found = configuration(Trial(planned({"steps": 100})), space)
    assert found == {"steps": 100, "net": {"width": 32, "depth": 2}, "env": "CartPole-v1"}
    assert capfd.readouterr().out.count("memfit-parameter: ") == 2


@NEEDS_RAY
def test_every_kind_of_range_is_known_and_odd_ones_are_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60
    )
    varied, constant, refused = json.loads(done.stdout)
    assert constant == {"env": "CartPole-v1"}
    ranges = {name: (p["kind"], p["low"], p["high"], p["step"]) for name, p in varied.items()}
    assert ranges["steps"] == ("int", 64, 4095, 1)  # Tune leaves the upper end out
    assert ranges["by"] == ("int", 32, 256, 32)
    assert ranges["logged"] == ("int", 8, 1024, 1) and varied["logged"]["log"]
    assert ranges["rate"][:3] == ("float", 1e-5, 1e-2) and varied["rate"]["log"]
    assert ranges["noise"][0] == "float"
    assert varied["net/width"]["choices"] == [64, 256]
    assert varied["net/kind"]["choices"] == ["a", "b"]
    assert len(refused) == 3 and all("odd" in text for text in refused)
