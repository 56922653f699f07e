"""A process that makes environments, steps them, and prints what it and its workers then hold."""

from __future__ import annotations

import argparse
import gc
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from memfit.systems.ninja.env import NinjaEnv
from memfit.systems.ninja.settings import EnvironmentConfig, Memory, TrainingSettings

STEPS = 6


def pss(pid: int) -> int:
    """The proportional set size of a process."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return 1024 * sum(int(line.split()[1]) for line in text.splitlines() if line[:4] == "Pss:")


def tree(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += tree(int(child))
    return found


def alone(config: EnvironmentConfig, n_envs: int) -> dict[str, Any]:
    """Environments in this process, without a trainer."""
    envs = [NinjaEnv(config) for _ in range(n_envs)]
    size = 0
    for number, env in enumerate(envs):
        observation, _ = env.reset(seed=number)
        size = sum(array.nbytes for array in observation.values())
        for step in range(STEPS):
            _, _, ended, timeout, _ = env.step(step % 6)
            if ended or timeout:
                env.reset()
        del observation
    gc.collect()
    return {"pss_bytes": pss_of_tree(), "observation_bytes": size}


def in_workers(config: EnvironmentConfig, n_envs: int, method: str) -> dict[str, Any]:
    """Environments in processes of their own, by stable-baselines3."""
    import numpy as np

    from memfit.systems.ninja.training import vec_env

    with vec_env(TrainingSettings(env=config, n_envs=n_envs, start_method=method)) as env:
        env.reset()
        for step in range(STEPS):
            env.step(np.full(n_envs, step % 6))
        gc.collect()
        return {"pss_bytes": pss_of_tree()}


def pss_of_tree() -> int:
    """What this process and its workers hold."""
    import os

    return sum(map(pss, tree(os.getpid())))


def main() -> None:
    """Print the result as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", default="", help="comma-separated; `all` is made to fit")
    parser.add_argument("--without", help="all changes but this one")
    parser.add_argument("--n-envs", type=int, required=True)
    parser.add_argument("--level", default="climb")
    parser.add_argument("--graphs", default="none")
    parser.add_argument("--workers")
    options = parser.parse_args()
    names = [name for name in options.changes.split(",") if name]
    memory = Memory.fitted(reuse=True) if names == ["all"] else Memory.only(*names)
    if options.without:
        memory = replace(Memory.fitted(reuse=True), **{options.without: False})
    config = EnvironmentConfig(memory=memory, levels=(options.level,), graphs=options.graphs)
    if options.workers:
        result = in_workers(config, options.n_envs, options.workers)
    else:
        result = alone(config, options.n_envs)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
