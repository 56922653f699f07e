"""The study on three Ray nodes of 2 GiB: trials that demand their plan, or each a whole node.

Also a sweep in whose middle a node is killed.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.stages import keep, say
from memfit.measure.kernel import proc

NODES, NODE, SEED = 3, 2 << 30, 2026
LEAST, MOST, STEP = 64, 2240, 32  # of n_steps: some 40 % fit no node
# Nobody is told that Ray runs here, and it is bound to loopback.
LOOPBACK = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
SWEEP = ["sweep", "--over", "n=20,40,60,80,100,120", "--limit", "1GiB", "--format", "json", "-q"]
HOLD = "import time; held = bytearray({n} << 20); time.sleep(8)"
_LOOK_SECONDS = 5.0  # adding up PSS takes a while, in which Tune waits


@contextmanager
def cluster() -> Iterator[tuple[Any, list[Any]]]:
    """Three nodes on loopback, and their address in the environment."""
    with TemporaryDirectory(prefix="r", dir="/tmp", ignore_cleanup_errors=True) as folder:
        os.environ |= {**LOOPBACK, "RAY_TMPDIR": folder, "XDG_CACHE_HOME": folder}
        from ray.cluster_utils import Cluster

        made = Cluster()
        nodes = [
            made.add_node(
                num_cpus=8,  # memory is what is short: trials wait for a simulator
                memory=NODE,
                object_store_memory=80 << 20,
                include_dashboard=False,
                node_ip_address="127.0.0.1",
            )
            for _ in range(NODES)
        ]
        os.environ["RAY_ADDRESS"] = made.address
        try:
            yield made, nodes
        finally:
            made.shutdown()


def drawn(trials: int) -> list[dict[str, Any]]:
    """Configurations, the same for each way to run them."""
    dice = random.Random(SEED)
    return [
        {
            "n_steps": dice.randrange(LEAST, MOST + 1, STEP),
            "batch_size": dice.choice([16, 32, 64]),
            "learning_rate": 10 ** dice.uniform(-5, -3),
        }
        for _ in range(trials)
    ]


def study(results: Path, name: str, trials: int, *, whole: bool) -> None:
    """All configurations, once; with `whole`, each that fits demands a node for itself."""
    with cluster(), TemporaryDirectory() as folder:
        import ray
        from ray import tune
        from ray.tune.search.basic_variant import BasicVariantGenerator

        from benchmarks.cluster.objective import train
        from memfit.integrations.ray import MemoryCallback, planned

        ray.init(address="auto", log_to_driver=False)
        space = {
            "n_steps": tune.qrandint(LEAST, MOST, STEP),
            "batch_size": tune.choice([16, 32, 64]),
            "learning_rate": tune.loguniform(1e-5, 1e-3),
        }
        trainable = planned(train, space, say=say)
        admission = trainable._resources  # type: ignore[attr-defined]
        for batch_size in (16, 32, 64):  # its surveys are not timed
            admission.demand({"n_steps": 64, "batch_size": batch_size, "learning_rate": 1e-4})

        def node_each(config: dict[str, Any]) -> Any:
            fits = not admission.demand(config)[1]
            one = tune.PlacementGroupFactory([{"CPU": 1, "memory": NODE}])
            return one if fits else admission(config)

        if whole:
            trainable = tune.with_resources(trainable, node_each)
        measured, use = MemoryCallback(say), _use()
        given = drawn(trials)
        algorithm = BasicVariantGenerator(points_to_evaluate=given)
        started = time.monotonic()
        found = tune.Tuner(
            trainable,
            param_space=space,
            tune_config=tune.TuneConfig(num_samples=trials, search_alg=algorithm),
            run_config=tune.RunConfig(callbacks=[measured, use], storage_path=folder, verbose=1),
        ).fit()
        seconds = time.monotonic() - started
        errors = {result.metrics["trial_id"]: str(result.error or "") for result in found}
        ray.shutdown()
    if not all(record.ended in ("complete", "error") for record in measured.records.values()):
        raise SystemExit("the study was stopped: nothing is kept of it")
    keep(
        results,
        name,
        {
            "trials": [{**vars(r), "error": errors[r.trial]} for r in measured.records.values()],
            "asked": trials,
            "seconds": round(seconds, 1),
            "limit_bytes": NODES * NODE,
            "load": os.getloadavg()[1],
            "given_share": _mean(use.given),
            "held_share": _mean(use.held),
        },
    )


def _use() -> Any:
    """What of the nodes' memory is given, and held, while a trial waits for some."""
    import ray
    from ray.tune import Callback

    class Use(Callback):
        given: list[float] = []  # noqa: RUF012 - there is one
        held: list[float] = []  # noqa: RUF012
        then = 0.0

        def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
            waiting = [t for t in trials if t.status == "PENDING" and _demand(t) > 1]
            if time.monotonic() < self.then or not waiting:
                return
            whole = NODES * NODE
            free = ray.available_resources().get("memory", 0)
            raylets = [p for p in proc.processes() if "/raylet " in proc.command(p)[:400]]
            held = sum(proc.tree_memory(pid).pss for pid in raylets)
            self.given.append((whole - free) / whole)
            self.held.append(held / whole)
            self.then = time.monotonic() + _LOOK_SECONDS

    return Use()


def _demand(trial: Any) -> float:
    return float(trial.placement_group_factory.required_resources.get("memory", 0))


def killed_node(results: Path) -> None:
    """A sweep on three nodes, of which one is killed meanwhile; and the same alone."""
    tail = ["--", sys.executable, "-c", HOLD]
    with cluster() as (made, nodes):
        words = [sys.executable, "-m", "memfit", *SWEEP]
        begun = subprocess.Popen([*words, "--engine", "ray", *tail], stdout=subprocess.PIPE)
        time.sleep(12)
        made.remove_node(nodes.pop(), allow_graceful=False)
        there, _ = begun.communicate(timeout=300)
        alone = subprocess.run([*words, *tail], stdout=subprocess.PIPE, check=True).stdout
    tables = [
        [{key: point[key] for key in ("value", "outcome", "peak_bytes")} for point in told]
        for told in (json.loads(there)["points"], json.loads(alone)["points"])
    ]
    keep(results, "ray-kill", {"nodes": tables[0], "alone": tables[1]})


def _mean(amounts: list[float]) -> float:
    return sum(amounts) / max(1, len(amounts))
