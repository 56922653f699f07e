"""Three shards of the drone's run, one on each node of a cluster, which average their gradients.

`python three_nodes.py AGENTS FOLDER` prints node, peak and exit code of each.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from memfit.measure.children.measured_command import measure

NODES, MEMORY = 3, 2**30
SHARD = str(Path(__file__).with_name("shard.py"))


def shard(rank: int, agents: str, folder: str) -> tuple[str, int, int | None, str]:
    """Run one, and measure it as a sweep does."""
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"  # as in a plan's child: threads that wait sleep
    words = [sys.executable, SHARD, str(rank), str(NODES), f"{folder}/meet", "--agents", agents]
    words += ["--iterations", "1", "--act-every", "25", "--max-minibatches", "4", "--quiet"]
    os.environ.pop("OMP_NUM_THREADS", None)  # Ray's own: the plan is of a plain run
    done = measure(words, memory=2 * MEMORY, timeout=800)
    node = ray.get_runtime_context().get_node_id()
    return node, done.peak_bytes, done.exit_code, done.output


def main() -> None:
    """Run all three."""
    ray.init(address="auto", log_to_driver=False)
    group = placement_group([{"CPU": 1, "memory": MEMORY}] * NODES, strategy="STRICT_SPREAD")
    ray.get(group.ready())
    started = []
    for rank in range(NODES):
        there = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=rank)
        remote = ray.remote(num_cpus=1, memory=MEMORY, scheduling_strategy=there)(shard)
        started.append(remote.remote(rank, *sys.argv[1:]))
    told = ray.get(started)
    for *_, code, output in told:
        if code:
            sys.stderr.write(output)
    sys.stdout.write("\n" + json.dumps([found[:3] for found in told]) + "\n")


if __name__ == "__main__":
    main()
