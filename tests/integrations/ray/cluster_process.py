"""A cluster of small nodes on loopback: `python cluster_process.py NODES MEMORY`.

It prints its address, does what it reads (`kill`: the last node is killed) and says so, and ends
with standard input.
"""

from __future__ import annotations

import sys
from typing import Any

from ray.cluster_utils import Cluster

STORE = 80 * 2**20


def main() -> None:
    """Run until nobody reads any more."""
    count, memory = int(sys.argv[1]), int(sys.argv[2])
    cluster = Cluster()
    nodes: list[Any] = [
        cluster.add_node(
            num_cpus=2,
            memory=memory,
            object_store_memory=STORE,
            include_dashboard=False,
            node_ip_address="127.0.0.1",
        )
        for _ in range(count)
    ]
    sys.stdout.write(f"address {cluster.address}\n")
    sys.stdout.flush()
    try:
        for line in sys.stdin:
            if line.strip() == "kill":
                cluster.remove_node(nodes.pop(), allow_graceful=False)
                sys.stdout.write("killed\n")
                sys.stdout.flush()
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main()
