"""Command line of the benchmark: ``python -m benchmarks.explain STAGE``."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from tests.truth import kernel
from tests.truth.running import NAMES, running, tree_pss

import memfit
from benchmarks.explain import table
from benchmarks.stages import keep, run_stage, say

HERE = Path(__file__).parent
RESULTS = HERE / "results"
STEPS = 150_000
EXPLANATIONS, ASKED_INSIDE = 1000, 100
LARGE = 20 * 10**9
TIMES = 5


def processes() -> None:
    """Sum, naming share and time on each of the reference processes."""
    found = []
    for name in NAMES:
        say(name)
        with running(name) as process:
            readings = []
            for _ in range(TIMES):
                before = tree_pss(process.pid)
                explanation = memfit.explain(process.pid)
                after = tree_pss(process.pid)
                ledger = explanation.ledger
                total = sum(ledger.bytes_of(c) for c in ledger.components)
                readings.append(
                    {
                        "kernel_bytes": (before + after) // 2,
                        "changed_bytes": after - before,
                        "sum_bytes": total,
                        "named_share": explanation.named_share,
                        "seconds": explanation.seconds,
                        "processes": len(explanation.processes),
                        "threads": sum(p.threads for p in explanation.processes),
                    }
                )
        steady = min(readings, key=lambda r: abs(r["changed_bytes"]))
        found.append({"name": name, **steady, "seconds": median(r["seconds"] for r in readings)})
    keep(RESULTS, "processes", found)


def thousand() -> None:
    """Explain a live training a thousand times; its result must be that of a run left alone."""
    found: dict[str, Any] = {"alone": [], "watched": None, "listened": None}
    found["alone"].append(train(explanations=0))
    found["watched"] = train(explanations=EXPLANATIONS)
    keep(RESULTS, "thousand", found)
    found["listened"] = train(explanations=ASKED_INSIDE, inside=True)
    keep(RESULTS, "thousand", found)


def train(*, explanations: int, inside: bool = False) -> dict[str, Any]:
    """One training, explained so often while it runs."""
    before = [sys.executable, "-m", "memfit", "run", "-q", "--no-file", "--"] if inside else []
    command = [*before, sys.executable, str(HERE / "training.py"), str(STEPS)]
    # Threads that spin while they wait would leave nothing of two cores to those who look.
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    done, seconds, holds = 0, [], []
    while done < explanations and process.poll() is None:
        try:
            explanation = memfit.explain(pid)
        except memfit.MemfitError:
            break
        seconds.append(explanation.seconds)
        if explanation.inside is not None:
            holds.append(explanation.inside.longest_hold_seconds)
        done += 1
        time.sleep(0.005)
    out = process.stdout.read().split()
    code = process.wait()
    digest, took = (out[0], float(out[1])) if len(out) == 2 else ("", 0.0)
    return {
        "exit_code": code,
        "digest": digest,
        "seconds": took,
        "explanations": done,
        "inside": len(holds),
        "explain_seconds": median(seconds) if seconds else None,
        "longest_hold_seconds": max(holds) if holds else None,
    }


def large() -> None:
    """Explain a process with 20 GB of touched memory."""
    process = subprocess.Popen(
        [sys.executable, str(HERE / "large.py"), str(LARGE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        assert process.stdout.readline() == b"ready\n"
        seconds = []
        for _ in range(TIMES):
            explanation = memfit.explain(process.pid)
            seconds.append(explanation.seconds)
        keep(RESULTS, "large", {"pss_bytes": explanation.pss_bytes, "seconds": seconds})
    finally:
        process.stdin.close()
        process.wait(60)


def inside() -> None:
    """What the processes themselves can name, and what asking costs them."""
    found = []
    for name in NAMES:
        say(name)
        with running(
            name, sys.executable, "-m", "memfit", "run", "-q", "--no-file", "--"
        ) as process:
            explanation = memfit.explain(process.pid)
            view = explanation.inside
            if view is None:
                continue
            found.append(
                {
                    "name": name,
                    "held_share": view.held_share,
                    "first_held_share": view.first_held_share,
                    "readings": view.taken,
                    "dropped": view.dropped,
                    "seconds": view.seconds,
                    "longest_hold_seconds": view.longest_hold_seconds,
                    "holders": [[h.path, h.bytes] for h in view.holders[:3]],
                }
            )
    keep(RESULTS, "inside", found)


# Small enough for seconds, large enough for all parts of a training.
SYSTEMS = {
    "drone": ("--agents", "64", "--iterations", "1000"),
    "fighter": ("--n-steps", "128", "--batch-size", "64", "--steps", "100000"),
    "ninja": ("--n-envs", "8", "--steps", "100000"),
    "trader": ("--trials", "0", "--workers", "2", "--iterations", "1000"),
}
LOOKS, UNTIL_IT_LEARNS = 5, 20.0


def systems() -> None:
    """The reference systems in the middle of their trainings, asked again and again."""
    found = []
    for name, options in SYSTEMS.items():
        for way in ((), ("--as-described",)):
            say(" ".join((name, *way)))
            command = [sys.executable, "-m", "memfit", "run", "-q", "--no-file", "--"]
            command += [sys.executable, "-m", f"memfit.systems.{name}", "--quiet"]
            with tempfile.TemporaryDirectory() as folder:
                process = subprocess.Popen([*command, *options, *way], cwd=folder)
                try:
                    time.sleep(UNTIL_IT_LEARNS)
                    views = []
                    for _ in range(LOOKS):
                        views.append(memfit.explain(kernel.recorded(process.pid)))
                        time.sleep(1.7)  # so that rollouts and updates have their turn
                finally:
                    process.terminate()
                    process.wait(60)
            inside = [view.inside for view in views if view.inside is not None]
            found.append(
                {
                    "name": name,
                    "described": bool(way),
                    "pss_bytes": [view.pss_bytes for view in views],
                    "held_shares": [view.held_share for view in inside],
                    "first_held_shares": [view.first_held_share for view in inside],
                    "readings": [view.taken for view in inside],
                    "dropped": [view.dropped for view in inside],
                    "seconds": [view.seconds for view in views],
                    "longest_hold_seconds": max(view.longest_hold_seconds for view in inside),
                }
            )
            keep(RESULTS, "systems", found)


STAGES = {
    "processes": processes,
    "thousand": thousand,
    "large": large,
    "inside": inside,
    "systems": systems,
    "table": lambda: table.write(RESULTS, HERE / "README.md"),
}


def main() -> None:
    """Run one stage."""
    run_stage("explain", __doc__, STAGES)


if __name__ == "__main__":
    main()
