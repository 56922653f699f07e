"""Command line of the benchmark: ``python -m benchmarks.ninja STAGE``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.accuracy.child import run
from benchmarks.ninja import table
from benchmarks.stages import keep, run_stage, say

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).parent / "results"
CALM = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}
# What building a level leaves free in the heap holds the first environments that are made to fit.
DESCRIBED_ENVS, FITTED_ENVS = (2, 10), (102, 502)
REPEATS = 4
GRAPH_CHANGES = ("views", "shared_levels", "shared_graphs", "lazy_graphs", "shared_spaces")
WITHOUT_ENVS = (102, 302)
WORKER_ENVS = (1, 3)
TRAINING_ENVS = (2, 8)


def child(module: str, *options: object, seconds: float = 600) -> Any:
    """What a module of this benchmark prints, from a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.ninja.{module}", *map(str, options)],
        cwd=ROOT,
        env=CALM,
        stdout=subprocess.PIPE,
        text=True,
        timeout=seconds,
        check=True,
    )
    return json.loads(done.stdout)


def slope(counts: tuple[int, int], *options: object) -> dict[str, Any]:
    """What an environment adds, from two processes with few and more of them."""
    few, many = (child("holder", "--n-envs", count, *options) for count in counts)
    each = (many["pss_bytes"] - few["pss_bytes"]) / (counts[1] - counts[0])
    say(f"{' '.join(map(str, options))}: {each / 2**20:.3f} MiB")
    return {
        "env_bytes": round(each),
        "n_envs": counts,
        "pss_bytes": [few["pss_bytes"], many["pss_bytes"]],
        "observation_bytes": few.get("observation_bytes"),
    }


def costs() -> None:
    """What one environment costs: as described, with each change alone, and made to fit."""
    from memfit.systems.ninja.settings import Memory

    found: dict[str, Any] = {"plain": {}, "graphs": {}}
    found["plain"]["described"] = slope(DESCRIBED_ENVS)
    for name in Memory.names():
        found["plain"][name] = slope(DESCRIBED_ENVS, "--changes", name)
    found["plain"]["fitted"] = slope(FITTED_ENVS, "--changes", "all")
    arrays = ("--graphs", "arrays")
    found["graphs"]["described"] = slope(DESCRIBED_ENVS, *arrays)
    for name in GRAPH_CHANGES:
        found["graphs"][name] = slope(DESCRIBED_ENVS, *arrays, "--changes", name)
    found["graphs"]["fitted"] = slope(FITTED_ENVS, *arrays, "--changes", "all")
    found["graphs"]["numbered"] = slope(FITTED_ENVS, "--graphs", "number", "--changes", "all")
    found["repeats"] = {
        "plain": [slope(DESCRIBED_ENVS)["env_bytes"] for _ in range(REPEATS)],
        "graphs": [slope(DESCRIBED_ENVS, *arrays)["env_bytes"] for _ in range(REPEATS)],
    }
    keep(RESULTS, "costs", found)


def without() -> None:
    """What one environment costs with all changes but one: what that one is still needed for."""
    from memfit.systems.ninja.settings import Memory

    found = {name: slope(WITHOUT_ENVS, "--without", name) for name in Memory.names()}
    found["fitted"] = slope(WITHOUT_ENVS, "--changes", "all")
    keep(RESULTS, "without", found)


def workers() -> None:
    """What an environment in a process of its own costs."""
    found = {}
    for changes in ("", "all"):
        for method in ("fork", "forkserver"):
            name = f"{'fitted' if changes else 'described'} {method}"
            found[name] = slope(WORKER_ENVS, "--changes", changes, "--workers", method)
    keep(RESULTS, "workers", found)


def training() -> None:
    """Peaks of whole trainings, seen from outside."""
    found: dict[str, list[dict[str, Any]]] = {}
    small = ("--n-steps", 16, "--epochs", 1, "--level", "climb", "--device", "cpu", "--quiet")
    ways: dict[str, tuple[object, ...]] = {
        "described": ("--as-described",),
        "fitted": (),
        "described graphs": ("--as-described", "--graphs", "--batch-size", 8),
        "fitted graphs": ("--graphs", "--batch-size", 8),
    }
    for name, more in ways.items():
        found[name] = []
        for n_envs in (1, 2) if "graphs" in name else TRAINING_ENVS:
            options = ("--n-envs", n_envs, "--steps", 32 * n_envs, *small, *more)
            command = [sys.executable, "-m", "memfit.systems.ninja", *map(str, options)]
            done = run(
                command,
                {"OMP_WAIT_POLICY": "PASSIVE"},
                limit_seconds=600,
                every_s=0.01,
                limit_bytes=12 << 30,
            )
            if done.stopped or done.exit_code:
                raise SystemExit(f"{name}: {done.complaint()}")
            say(f"{name}, {n_envs} environments: {done.peak.pss / 2**20:.0f} MiB")
            found[name].append({"n_envs": n_envs, "peak_bytes": done.peak.pss})
    keep(RESULTS, "training", found)


def profiler() -> None:
    """How much profilers themselves grow."""
    cases = (("none", 1), ("kept", 20), ("kept", 200), ("readings", 20), ("readings", 2000))
    keep(RESULTS, "profiler", [child("snapshots", way, snapshots) for way, snapshots in cases])


def learning() -> None:
    """Whether it learns: a seeded training, beside actions drawn at random."""
    keep(RESULTS, "learning", child("learner", seconds=3600))


def main() -> None:
    """Run one stage."""
    stages = {
        "costs": costs,
        "without": without,
        "workers": workers,
        "training": training,
        "profiler": profiler,
        "learning": learning,
    }
    run_stage("ninja", __doc__, {**stages, "table": lambda: table.write(RESULTS)})


if __name__ == "__main__":
    main()
