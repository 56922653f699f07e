"""`plan --nodes` beside a real run over three nodes, each below a runner of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memfit.units import MIB
from tests.integrations.ray.conftest import NEEDS_RAY, RealCluster
from tests.truth.published import bounds

SPEC = str(Path(__file__).parents[3] / "src/memfit/specs/drone-fit.toml")
PROGRAMS = Path(__file__).parent / "programs"
NODE, AGENTS = 720 * MIB, 22_500


pytestmark = [
    NEEDS_RAY,
    pytest.mark.slow,
    pytest.mark.torch,
    pytest.mark.truth,
    pytest.mark.timeout(1200),
]


@pytest.fixture(scope="module")
def planned_and_run(
    cluster: RealCluster, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], list[tuple[str, int]]]:
    """What one node is planned to hold, and what each of three held."""
    words = ("plan", SPEC, "--set", f"agents={AGENTS}", "--nodes", "720MiB", "--format", "json")
    plan = cluster.memfit(*words)
    assert plan.returncode == 0, plan.stderr
    nodes = json.loads(plan.stdout)["nodes"]
    assert nodes["count"] == 3
    place = str(tmp_path_factory.mktemp("meet"))
    done = cluster.python(str(PROGRAMS / "three_nodes.py"), str(nodes["each"]), place, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert [code for _, _, code in told] == [0, 0, 0]
    return nodes, [(node, peak) for node, peak, _ in told]


Ran = tuple[dict[str, Any], list[tuple[str, int]]]


def test_each_node_holds_what_it_is_planned_to_hold(planned_and_run: Ran) -> None:
    nodes, told = planned_and_run
    assert len({node for node, _ in told}) == 3
    for _, peak in told:
        assert peak <= NODE
        assert abs(peak / nodes["peak_bytes"] - 1) <= bounds("plan").worst


@pytest.mark.xfail(
    strict=False, reason="the drone's own plan is 1 to 2 % too low here: see docs/cluster.md"
)
def test_no_node_goes_beyond_its_upper_bound(planned_and_run: Ran) -> None:
    nodes, told = planned_and_run
    assert all(peak <= nodes["upper_bytes"] for _, peak in told)
