"""`plan --nodes` beside a real run over three nodes, each below a runner of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memfit.units import MIB
from tests.integrations.ray.conftest import NEEDS_RAY, RealCluster
from tests.truth.published import bounds

SPEC = str(Path(__file__).parents[3] / "src/memfit/specs/drone-fit.toml")
PROGRAMS = Path(__file__).parent / "programs"
NODE, AGENTS = 704 * MIB, 24_000


@NEEDS_RAY
@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.truth
@pytest.mark.timeout(600)
def test_each_node_holds_what_it_is_planned_to_hold(cluster: RealCluster, tmp_path: Path) -> None:
    words = ("plan", SPEC, "--set", f"agents={AGENTS}", "--nodes", "704MiB", "--format", "json")
    plan = cluster.memfit(*words)
    assert plan.returncode == 0, plan.stderr
    nodes = json.loads(plan.stdout)["nodes"]
    assert nodes["count"] == 3 and nodes["upper_bytes"] <= NODE
    done = cluster.python(
        str(PROGRAMS / "three_nodes.py"), str(nodes["each"]), str(tmp_path), timeout=500
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert len({node for node, _, _ in told}) == 3
    for _, peak, code in told:
        assert code == 0
        assert peak <= nodes["upper_bytes"]
        assert abs(peak / nodes["peak_bytes"] - 1) <= bounds("plan").worst
