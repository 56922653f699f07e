"""What a planned run demands of Ray."""

from __future__ import annotations

from pathlib import Path

import pytest

from memfit.errors import UsageError
from memfit.integrations.ray import resources
from memfit.integrations.ray.demand import Demand
from memfit.units import MIB
from tests.integrations.ray.conftest import NEEDS_RAY

SPEC = str(Path(__file__).parents[3] / "src/memfit/specs/drone-fit.toml")
SOME = Demand(
    peak_bytes=400 * MIB, upper_bytes=450 * MIB, memory_bytes=460 * MIB, worker_bytes=0, cpus=3
)


def test_each_part_of_ray_is_told_in_its_own_words() -> None:
    assert SOME.remote == {"memory": 460 * MIB, "num_cpus": 3}
    assert SOME.tune == {"memory": 460 * MIB, "cpu": 3}
    assert SOME.bundle == {"memory": 460 * MIB, "CPU": 3}


@NEEDS_RAY
@pytest.mark.torch
def test_a_spec_demands_its_bound_and_what_a_process_of_ray_holds() -> None:
    small, large = resources(SPEC, agents=100), resources(SPEC, agents=20_000)
    assert 50 * MIB < small.worker_bytes < 400 * MIB
    assert small.peak_bytes < small.upper_bytes < small.memory_bytes < large.memory_bytes
    assert small.cpus == 1


@NEEDS_RAY
@pytest.mark.torch
def test_what_the_target_does_not_have_is_refused() -> None:
    with pytest.raises(UsageError, match="agent_count"):
        resources(SPEC, agent_count=100)
    with pytest.raises(UsageError, match="cpus"):
        resources(SPEC, cpus=-1)
