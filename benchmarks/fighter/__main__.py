"""Command line of the benchmark: ``python -m benchmarks.fighter STAGE``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import memfit
from benchmarks.accuracy.child import Run, run
from benchmarks.fighter import table
from benchmarks.stages import keep, run_stage, say

RESULTS = Path(__file__).parent / "results"
GIB = 1 << 30
LIMIT = 6 * GIB
CALM = {"OMP_WAIT_POLICY": "PASSIVE"}
ONE_ITERATION_TWICE = 2  # what the second one finds of the first may count

# n_steps and batch_size of the runs whose peaks are compared.
SIZES = ((512, 256), (1024, 256), (1024, 1024), (1024, 2048))
# The rollout and minibatch of the assessment itself; one epoch holds as much as ten.
WHOLE = (8192, 2048)
WHOLE_LIMIT = 16 * GIB
WHOLE_SECONDS = 2 * 3600
LEARNING = {
    "frames": "half",
    "n-envs": 2,
    "n-steps": 512,
    "batch-size": 256,
    "micro-batch": 256,
    "epochs": 4,
    "entropy": 0.01,
    "steps": 40_960,
    "seed": 0,
}


def fighter(
    *options: object,
    limit_seconds: float = 1800,
    limit_bytes: int = LIMIT,
    module: str = "memfit.systems.fighter",
) -> Run:
    """Run the fighter system in processes of its own and sample their memory from outside."""
    command = [sys.executable, "-m", module, *map(str, options)]
    here = str(Path(__file__).parents[2])
    done = run(
        command,
        {**CALM, "PYTHONPATH": here},
        limit_seconds=limit_seconds,
        every_s=0.02,
        limit_bytes=limit_bytes,
    )
    if done.exit_code and not done.stopped:
        raise SystemExit(f"{' '.join(map(str, options))}: {done.complaint()}")
    return done


def result(done: Run, **more: Any) -> dict[str, Any]:
    """What is kept of a run."""
    return {
        **more,
        "peak_bytes": done.peak.pss,
        "processes": [{"rss": one.rss, "pss": one.pss} for one in done.tree_at_peak],
        "seconds": round(done.seconds, 1),
        "stopped": done.stopped,
        "said": done.stdout.strip().splitlines(),
    }


def peaks() -> None:
    """Peaks of whole process trees over rollout and minibatch, for both trainings."""
    found = []
    for training, option in (("as described", ["--as-described"]), ("made to fit", [])):
        for n_steps, batch in SIZES:
            say(f"{training}, n_steps {n_steps}, batch {batch}")
            options = [
                *("--n-steps", n_steps, "--batch-size", batch, "--epochs", 1, "--device", "cpu"),
                *("--steps", 2 * n_steps * ONE_ITERATION_TWICE, "--quiet", *option),
            ]
            done = fighter(*options)
            found.append(result(done, training=training, n_steps=n_steps, batch_size=batch))
    keep(RESULTS, "peaks", found)


def whole() -> None:
    """The assessment's own rollout and minibatch, planned and then run, for both trainings."""
    n_steps, batch = WHOLE
    found = []
    for training, spec, option in (
        ("made to fit", "fighter-fit.toml", []),
        ("as described", "fighter.toml", ["--as-described"]),
    ):
        planned = memfit.plan(spec).peak_bytes
        say(f"{training}, n_steps {n_steps}, batch {batch}, planned {planned / GIB:.2f} GiB")
        done = fighter(
            *("--n-steps", n_steps, "--batch-size", batch, "--epochs", 1, "--device", "cpu"),
            *("--steps", 2 * n_steps, "--quiet", *option),
            limit_seconds=WHOLE_SECONDS,
            limit_bytes=WHOLE_LIMIT,
        )
        kept = result(done, training=training, n_steps=n_steps, batch_size=batch)
        found.append({**kept, "planned_bytes": planned})
        keep(RESULTS, "whole", found)


def moments() -> None:
    """The main process at the end of the rollout, at the flatten, and in minibatches."""
    found = []
    for training, n_steps, batch in (
        ("as described", 512, 256),
        ("as described", 1024, 256),
        ("made to fit", 1024, 256),
    ):
        say(f"moments {training}, n_steps {n_steps}, batch {batch}")
        done = fighter(training, n_steps, batch, module="benchmarks.fighter.moments")
        found.append(json.loads(done.stdout.strip().splitlines()[-1]))
    keep(RESULTS, "moments", found)


def emulator() -> None:
    """The emulator with our game, alone in a process."""
    done = fighter(module="benchmarks.fighter.alone")
    keep(RESULTS, "emulator", json.loads(done.stdout.strip().splitlines()[-1]))


def learning() -> None:
    """Whether it learns: a seeded training, and random actions beside it."""
    options = [text for name, value in LEARNING.items() for text in (f"--{name}", value)]
    say(f"{LEARNING['steps']:,} steps")
    done = fighter(*options, "--quiet", "--device", "cpu", limit_seconds=3600)
    keep(RESULTS, "learning", result(done, settings=LEARNING, random_returns=random_returns()))


def random_returns(episodes: int = 100) -> list[float]:
    """Returns of random actions, a match each."""
    import numpy as np

    from memfit.systems.fighter.env import FighterEnv

    env, draw, returns = FighterEnv(), np.random.default_rng(0), []
    for seed in range(episodes):
        env.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            _, reward, terminated, truncated, _ = env.step(int(draw.integers(6)))
            total += reward
            over = terminated or truncated
        returns.append(total)
    return returns


def main() -> None:
    """Run one stage."""
    stages = {
        "emulator": emulator,
        "moments": moments,
        "peaks": peaks,
        "learning": learning,
        "whole": whole,
    }
    run_stage("fighter", __doc__, {**stages, "table": lambda: table.write(RESULTS)})


if __name__ == "__main__":
    main()
