"""Measures what a run has beside its training: envs, workers, evaluation and saving."""

from __future__ import annotations

import gc
import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from memfit.measure.kernel import proc
from memfit.measure.kernel.proc import PeakMeter
from memfit.measure.survey.run_processes import read_others, read_workers
from memfit.model import Readings, WorkerReading
from memfit.model.busy_clock import BusyClock
from memfit.model.training import Beside

_ENVS = 64
_FEW_ENVS = 8  # of which one is told from chance
_ENV_SECONDS = 0.25
_EVALUATED_STEPS = 4


def with_beside(readings: Readings, beside: Beside, scratch: Path) -> Readings:
    """The readings of a survey, with those of what stands around the training."""
    found: dict[str, Any] = {}
    if beside.workers:
        workers = read_workers(beside.workers)
        if beside.worker_envs and beside.make_env is not None:
            workers = _shared_by_envs(workers, beside.worker_envs, beside.make_env)
        found["workers"] = workers
    elif beside.make_env is not None:
        found["env_each"] = cost_of_one(beside.make_env)
    found["others"] = read_others(beside.workers)
    if beside.evaluate is not None:
        found["evaluate_bytes"] = _growth(beside.evaluate)
    if beside.save is not None:  # the replay buffer apart
        found["save_bytes"] = _spike(partial(beside.save, scratch, False))
    if beside.saves_replay:
        found["pickled_copies"] = _pickled_copies(scratch)
    return replace(readings, **found)


def cost_of_one(make: Callable[[], object]) -> int:
    """What one more env adds to the process: some are built, reset and kept while it is read."""
    kept: list[Any] = []
    clock = BusyClock()
    try:
        kept.append(make())  # the first may load what all of them share
        before = proc.tree_memory(os.getpid())
        while len(kept) <= _ENVS and not _seen_enough(len(kept), clock):
            kept.append(make())
    except Exception:  # noqa: BLE001 - an env that can be built only once costs what it costs
        return 0
    return _added(before) // (len(kept) - 1)


def _seen_enough(envs: int, clock: BusyClock) -> bool:
    """A few in any case, unless they are hard work; many, if they are quick."""
    if envs <= _FEW_ENVS:
        return envs > 1 and clock.busy() > _ENV_SECONDS
    return clock.seconds() > _ENV_SECONDS


def _shared_by_envs(workers: WorkerReading, envs: int, make: Callable[[], object]) -> WorkerReading:
    """The same for workers that run several envs each, whose number does not grow with them."""
    total = workers.started * workers.each_bytes
    env = min(cost_of_one(make), total // envs)
    each = (total - envs * env) // max(1, workers.started)
    return replace(workers, each_bytes=each, envs=envs, env_bytes=env)


def _growth(evaluate: Callable[[int, float], None]) -> int:
    """What the evaluation env grows by when it is reset and stepped a little."""
    before = proc.tree_memory(os.getpid())
    evaluate(_EVALUATED_STEPS, _ENV_SECONDS)
    gc.collect()
    return _added(before)


def _added(before: proc.TreeMemory) -> int:
    """What this process, and those below it, have taken since then.

    While someone looks at a fork that has ended, its part of the pages that it shared stays away,
    and then comes back to PSS. RSS does not know of that, and is enough where there are no other
    processes than before.
    """
    now = proc.tree_memory(os.getpid())
    if now.main is None or before.main is None or now.processes != before.processes:
        return max(0, now.alone - before.alone)
    return max(0, now.main.rss - before.main.rss)


def _pickled_copies(scratch: Path) -> int:
    """How many copies of an array pickle holds while it saves one: none in recent versions."""
    import numpy as np

    array = np.ones((2048, 2048), np.float32)
    target = scratch / "array.pkl"

    def save() -> None:
        with target.open("wb") as file:
            pickle.dump({"array": array}, file, protocol=pickle.HIGHEST_PROTOCOL)

    spike = _spike(save)
    target.unlink()
    return round(spike / array.nbytes)


def _spike(work: Callable[[], None]) -> int:
    """What work adds to this process's own RSS: a fork that has just ended still shares in PSS."""
    meter = PeakMeter()
    meter.start()
    before = meter.own_peak()
    work()
    return max(0, meter.own_peak() - before)
