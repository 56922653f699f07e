"""Command line of the benchmark: ``python -m benchmarks.scale STAGE``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from benchmarks.accuracy.child import Run, run
from benchmarks.scale import table
from benchmarks.stages import keep, run_stage, say

RESULTS = Path(__file__).parent / "results"
DESCRIBED = (20, 50, 100, 200, 400)
FITTED = (1_000, 10_000, 50_000, 100_000)
MILLION = 1_000_000
ACT_EVERY = 10
MINIBATCHES = 200
GIB = 1 << 30
LIMIT = 22 * GIB  # of a machine with 24 GiB


def drone(*options: object, limit_seconds: float) -> Run:
    """Run the drone system in a process of its own and sample its memory from outside."""
    command = [sys.executable, "-m", "memfit.systems.drone", "--device", "cpu", *map(str, options)]
    done = run(command, limit_seconds=limit_seconds, every_s=0.02, limit_bytes=LIMIT)
    if done.stopped or done.exit_code:
        raise SystemExit(f"{' '.join(map(str, options))}: {done.complaint()}")
    return done


def result(agents: int, done: Run, **more: Any) -> dict[str, Any]:
    """What is kept of a run."""
    return {
        "agents": agents,
        "peak_bytes": done.peak.pss,
        "seconds": round(done.seconds, 1),
        "said": done.stdout.strip().splitlines(),
        **more,
    }


def slopes() -> None:
    """Peaks over the number of agents, for both trainings."""
    found: dict[str, list[dict[str, Any]]] = {"described": [], "fitted": []}
    for agents in DESCRIBED:
        say(f"as described, {agents} agents")
        done = drone("--as-described", "--agents", agents, "--iterations", 2, limit_seconds=900)
        found["described"].append(result(agents, done))
    for agents in FITTED:
        say(f"made to fit, {agents:,} agents")
        options = ["--iterations", 2, "--act-every", ACT_EVERY, "--max-minibatches", 20]
        done = drone("--agents", agents, *options, limit_seconds=900)
        found["fitted"].append(result(agents, done))
    keep(RESULTS, "slopes", found)


def million() -> None:
    """A million agents: a rollout of all their steps kept in full, then updates."""
    say("a million agents")
    done = drone(
        "--agents",
        MILLION,
        "--iterations",
        1,
        "--act-every",
        ACT_EVERY,
        "--max-minibatches",
        MINIBATCHES,
        limit_seconds=7200,
    )
    keep(RESULTS, "million", result(MILLION, done, act_every=ACT_EVERY, minibatches=MINIBATCHES))


def learning() -> None:
    """Whether it learns: mean returns of a seeded training, and of actions drawn at random."""
    say("256 agents, 40 iterations")
    options = ["--agents", 256, "--iterations", 40, "--seed", 0]
    done = drone(*options, limit_seconds=3600)
    keep(RESULTS, "learning", result(256, done, random_return=random_return(), iterations=40))


def random_return(agents: int = 4096) -> float:
    """The mean return of random actions over one episode."""
    import torch

    from memfit.systems.drone.flight import Flight
    from memfit.systems.drone.settings import ACTIONS, CHANNELS, EPISODE, SAMPLES

    flight = Flight(agents, seed=1, device="cpu")
    flight.reset()
    draw = torch.Generator().manual_seed(2)
    samples = torch.zeros(agents, SAMPLES, CHANNELS, dtype=torch.int16)
    rewards, total = torch.zeros(agents), torch.zeros(agents)
    for _ in range(EPISODE):
        actions = torch.empty(agents, ACTIONS).uniform_(-1, 1, generator=draw)
        flight.advance(actions, samples, rewards)
        total += rewards
    return float(total.mean())


def main() -> None:
    """Run one stage."""
    stages = {"slopes": slopes, "million": million, "learning": learning}
    run_stage("scale", __doc__, {**stages, "table": lambda: table.write(RESULTS)})


if __name__ == "__main__":
    main()
