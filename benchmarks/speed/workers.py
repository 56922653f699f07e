"""Workers of vector envs on CartPole: private memory of each, and steps a second.

Both vector envs are there at once and step in turns, so that other work on the machine disturbs
both alike. Times are those of the wall: most of the work is in other processes.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv

from memfit.dropins import LightVecEnv

BASE = "stable-baselines3"
CLASSES: dict[str, type[VecEnv]] = {BASE: SubprocVecEnv, "memfit": LightVecEnv}
WARM_STEPS = 200
ROUND_SECONDS = 0.5


def private(pid: int) -> int:
    """Bytes that only this process has."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))


def pids(env: VecEnv) -> list[int]:
    if isinstance(env, LightVecEnv):
        return env.pids
    assert isinstance(env, SubprocVecEnv)
    return [process.pid for process in env.processes if process.pid is not None]


def seconds(env: VecEnv, steps: int, rng: np.random.Generator) -> float:
    """For so many steps of all envs."""
    actions = rng.integers(0, 2, (steps, env.num_envs))
    began = time.perf_counter()
    for step in range(steps):
        env.step(actions[step])
    return time.perf_counter() - began


def measure(*, small: bool) -> dict[str, Any]:
    """For each number of envs: the workers' private memory, steps a second, and their ratio."""
    rounds = 3 if small else 21
    return {"envs": {str(n): _compared(n, rounds) for n in ((4,) if small else (4, 8, 16, 32))}}


def _compared(n_envs: int, rounds: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    envs, started = {}, {}
    for name, cls in CLASSES.items():
        began = time.perf_counter()
        envs[name] = make_vec_env("CartPole-v1", n_envs=n_envs, seed=0, vec_env_cls=cls)
        started[name] = time.perf_counter() - began
    try:
        steps = {}
        for name, env in envs.items():
            env.reset()
            taken = seconds(env, WARM_STEPS, rng)
            steps[name] = max(10, int(WARM_STEPS * ROUND_SECONDS / taken))
        rates: dict[str, list[float]] = {name: [] for name in envs}
        for turn in range(rounds):
            for name in list(envs)[:: 1 if turn % 2 else -1]:
                taken = seconds(envs[name], steps[name], rng)
                rates[name].append(steps[name] * n_envs / taken)
        held = {name: [private(pid) for pid in pids(env)] for name, env in envs.items()}
    finally:
        for env in envs.values():
            env.close()
    ratios = [a / b for a, b in zip(rates["memfit"], rates[BASE], strict=True)]
    return {
        "workers": {name: len(sizes) for name, sizes in held.items()},
        "private": {name: max(sizes) for name, sizes in held.items()},
        "private_sum": {name: sum(sizes) for name, sizes in held.items()},
        "start_seconds": started,
        "steps_per_second": {name: statistics.median(found) for name, found in rates.items()},
        "ratio": statistics.median(ratios),
        "ratio_quartiles": statistics.quantiles(ratios, n=4)[::2],
    }
