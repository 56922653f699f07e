"""Command line of the benchmark: ``python -m benchmarks.cluster STAGE [--trials N]``."""

from __future__ import annotations

import argparse
import os
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import optuna

from benchmarks.cluster import ray_study, table
from benchmarks.stages import keep, say
from memfit.integrations.optuna import Within, within
from memfit.measure.kernel import proc

RESULTS = Path(__file__).parent / "results"
OBJECTIVE = "benchmarks.cluster.objective:objective"
LIMIT = 4 << 30
SEED = 2026
ASKS = 10_000
_LOOK_SECONDS = 0.5


class Use:
    """What the study's processes hold, and what shares are given, while trials wait for room."""

    def __init__(self, bounded: Within) -> None:
        self.bounded = bounded
        self.held: list[int] = []
        self.given: list[int] = []
        self.most = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Use:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            held, room = proc.tree_memory(os.getpid()).pss, self.bounded.room
            self.most = max(self.most, held)
            if any(place.trial for place in room.waiting) and room.running:
                self.held.append(held)
                own = room.limit - room.usable
                whole = any(place.share is None for place in room.running)
                shares = sum(place.share or 0 for place in room.running)
                self.given.append(room.limit if whole else min(room.limit, own + shares))


def study(name: str, trials: int, jobs: int | str) -> None:
    """The same trials, in an order of their own."""
    with TemporaryDirectory() as folder:
        bounded = within(OBJECTIVE, LIMIT, jobs, folder=folder, say=say)  # type: ignore[arg-type]
        bounded.ask(n_steps=64, batch_size=16, learning_rate=1e-3)  # its surveys are not timed
        sampler = optuna.samplers.RandomSampler(seed=SEED)
        found = optuna.create_study(storage=f"sqlite:///{folder}/study.db", sampler=sampler)
        for params in drawn(trials):
            found.enqueue_trial(params)
        started = time.monotonic()
        with Use(bounded) as use:
            bounded.optimize(found, trials)
        seconds = time.monotonic() - started
        keep(
            RESULTS,
            name,
            {
                "trials": [told(trial) for trial in found.trials],
                "seconds": round(seconds, 1),
                "limit_bytes": LIMIT,
                "load": os.getloadavg()[1],
                "most_at_once": bounded.room.most_at_once,
                "most_bytes": use.most,
                "held_share": _mean(use.held) / LIMIT,
                "given_share": _mean(use.given) / LIMIT,
            },
        )


def drawn(trials: int) -> list[dict[str, Any]]:
    """Configurations, the same for each way to run them."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=SEED))
    found = []
    for _ in range(trials):
        trial = study.ask()
        found.append(
            {
                "n_steps": trial.suggest_int("n_steps", 64, 6080, step=32),
                "batch_size": trial.suggest_categorical("batch_size", [16, 32, 64]),
                "learning_rate": trial.suggest_float("learning_rate", 1e-5, 1e-3, log=True),
            }
        )
    return found


def told(trial: Any) -> dict[str, Any]:
    """What is kept of a trial."""
    facts = trial.user_attrs
    return {
        "params": trial.params,
        "state": trial.state.name,
        "verdict": facts.get("verdict"),
        "planned_bytes": facts.get("plan", {}).get("peak_bytes"),
        "upper_bytes": facts.get("plan", {}).get("upper_bytes"),
        "peak_bytes": facts.get("peak_bytes"),
        "reason": facts.get("reason"),
    }


def alone(trials: int) -> None:
    """All that were pruned, each alone, with three times the memory: would it have fitted?"""
    import json

    pruned = [
        trial
        for trial in json.loads((RESULTS / "fit.json").read_text())["trials"]
        if trial["state"] == "PRUNED"
    ]
    with TemporaryDirectory() as folder:
        bounded = within(OBJECTIVE, 3 * LIMIT, 1, folder=folder, say=say)
        found = optuna.create_study()
        for trial in pruned:
            found.enqueue_trial(trial["params"])
        bounded.optimize(found, len(pruned))
        keep(RESULTS, "alone", [told(trial) for trial in found.trials])


def asks(trials: int) -> None:
    """Questions about a planned space."""
    with TemporaryDirectory() as folder:
        bounded = within(OBJECTIVE, LIMIT, folder=folder, say=say)
        bounded.ask(n_steps=64, batch_size=16, learning_rate=1e-3)
        started, busy = time.monotonic(), time.process_time()
        for number in range(ASKS):
            bounded.ask(n_steps=64 + number % 6000, batch_size=32, learning_rate=1e-4)
        result = {
            "asks": ASKS,
            "seconds": time.monotonic() - started,
            "processor_seconds": time.process_time() - busy,
            "surveys": len(bounded.planned.surveys),
        }
        keep(RESULTS, "asks", result)


def _mean(amounts: list[int]) -> float:
    return sum(amounts) / max(1, len(amounts))


def main() -> None:
    """Run one stage."""
    stages = {
        "fit": lambda trials: study("fit", trials, "fit"),
        "worst": lambda trials: study("worst", trials, 1),
        "alone": alone,
        "ray-fit": lambda trials: ray_study.study(RESULTS, "ray-fit", trials, whole=False),
        "ray-worst": lambda trials: ray_study.study(RESULTS, "ray-worst", trials, whole=True),
        "ray-kill": lambda trials: ray_study.killed_node(RESULTS),
        "asks": asks,
        "table": lambda trials: table.write(RESULTS),
    }
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("stage", choices=stages)
    parser.add_argument("--trials", type=int, default=60)
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    stages[options.stage](options.trials)


if __name__ == "__main__":
    main()
