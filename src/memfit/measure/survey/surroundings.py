"""What stands around a model: envs, subprocess workers, evaluation and saving."""

from __future__ import annotations

import gc
import os
import pickle
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from memfit.measure.kernel import proc
from memfit.measure.kernel.proc import PeakMeter
from memfit.model import WorkerReading

_ENVS = 64
_ENV_SECONDS = 0.25


def cost_of_one_env(env_fns: Sequence[Callable[[], Any]]) -> int:
    """What one more env adds to the process: some are built, reset and kept while it is read."""
    if not env_fns:
        return 0
    meter = PeakMeter()
    kept: list[Any] = []
    deadline = time.perf_counter() + _ENV_SECONDS
    try:
        kept.append(_ready(env_fns[0]))  # the first may load what all of them share
        before = meter.now()
        while len(kept) <= _ENVS and (len(kept) < 2 or time.perf_counter() < deadline):
            kept.append(_ready(env_fns[0]))
    except Exception:  # noqa: BLE001 - an env that can be built only once costs what it costs
        return 0
    return max(0, (meter.now() - before) // (len(kept) - 1))


def _ready(make: Callable[[], Any]) -> tuple[Any, Any]:
    env = make()
    return env, env.reset()


def read_workers(processes: Sequence[Any]) -> WorkerReading:
    """The private memory of one worker, and what the helpers of their start method hold."""
    workers = {process.pid for process in processes}
    private = [r.private_dirty for p in workers if (r := proc.rollup(p)) is not None]
    helpers = 0
    for pid in proc.descendants(os.getpid()):
        if pid not in workers and (reading := proc.rollup(pid)) is not None:
            helpers += reading.pss_anon
    each = int(sum(private) / len(private)) if private else 0
    return WorkerReading(started=len(private), each_bytes=each, shared_bytes=helpers)


def evaluate_bytes(model: Any, eval_env: Any) -> int:
    """What the evaluation env grows by when it is reset and stepped a little."""
    meter = PeakMeter()
    before = meter.now()
    observations = eval_env.reset()
    deadline = time.perf_counter() + _ENV_SECONDS
    for _ in range(4):
        actions, _ = model.predict(observations, deterministic=True)
        observations, _, _, _ = eval_env.step(actions)
        if time.perf_counter() > deadline:
            break
    gc.collect()
    return max(0, meter.now() - before)


def save_bytes(model: Any, scratch: Path) -> int:
    """The spike of one save of the model, replay buffer apart."""
    meter = PeakMeter()
    before = meter.now()
    meter.start()
    target = scratch / "model.zip"
    model.save(target)
    target.unlink(missing_ok=True)
    return max(0, meter.peak() - before)


def pickled_copies(scratch: Path) -> int:
    """How many copies of an array pickle holds while it saves one: none in recent versions."""
    import numpy as np

    array = np.ones((2048, 2048), np.float32)
    meter = PeakMeter()
    before = meter.now()
    meter.start()
    target = scratch / "array.pkl"
    with target.open("wb") as file:
        pickle.dump({"array": array}, file, protocol=pickle.HIGHEST_PROTOCOL)
    target.unlink()
    return round((meter.peak() - before) / array.nbytes)
