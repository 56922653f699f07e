"""MF006: every subprocess worker imports all libraries anew.

What: `SubprocVecEnv` starts its workers with `forkserver` unless told otherwise. Each of them
imports torch and stable-baselines3 for itself, about 150 MiB that no other process shares, however
light its environment is.

Why: with `start_method="fork"` workers share what the main process has imported, and `DummyVecEnv`
has no workers at all, which is also faster for light environments. Forking is unsafe once the main
process has started CUDA or threads that hold locks. `memfit.dropins.LightVecEnv` forks its workers
from a clean process of its own, which holds the imports once more. Savings are estimates from the
ledger's own rows: what a worker holds, less two thirds of the import base (the share of it that is
private), but not below 8 MiB.

Bad:
    from stable_baselines3.common.vec_env import SubprocVecEnv

    env = SubprocVecEnv([make_env] * 16)

Good:
    from memfit.dropins import LightVecEnv

    env = LightVecEnv([make_env] * 16)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks._rows import named, resized
from memfit.checks.spot import Spot
from memfit.model import Changes, Finding, Fix, Ledger, RunSpec, Severity, knob
from memfit.model.changes import WORKERS
from memfit.syntax import Arguments, Source, calls, keyword, last_name
from memfit.units import MIB, format_bytes

CODE = "MF006"
SEVERITY = Severity.INFO
ROW, BASE = "workers.private", "base.imports"
HEAVY = 64 * MIB
FORKED = 8 * MIB


def find_in_source(source: Source) -> Iterator[Spot]:
    for call in calls(source, ("stable_baselines3",), ("SubprocVecEnv",)):
        if Arguments(call).lacks("start_method", 1):
            yield _spot(call)
    for call in calls(source, ("stable_baselines3",), ("make_vec_env", "make_atari_env")):
        given = keyword(call, "vec_env_cls")
        if last_name(given) == "SubprocVecEnv" and Arguments(call).lacks("vec_env_kwargs"):
            yield _spot(call)


def _spot(call: ast.Call) -> Spot:
    return Spot(
        call,
        "each worker imports torch and stable-baselines3 for itself, about 150 MiB",
        "memfit.dropins.LightVecEnv in the place of SubprocVecEnv",
    )


def find(spec: RunSpec, ledger: Ledger, limit: int) -> Iterator[Finding]:
    how = spec.vec_env.start_method if spec.vec_env is not None else ""
    if how not in ("forkserver", "spawn") or _each(ledger) < HEAVY:
        return
    yield Finding(
        code=CODE,
        severity=Severity.WARNING,
        message=f"each of {ledger.knobs['n_envs']:,} workers holds {format_bytes(_each(ledger))} "
        f"of its own, mostly libraries that {how} makes it import again",
        where="SubprocVecEnv(start_method=...)",
        bytes=named(ledger, [ROW]),
    )


def fix(spec: RunSpec, ledger: Ledger) -> Iterator[Fix]:
    imported = named(ledger, [BASE]) * 2 // 3
    left = max(_each(ledger) - imported, FORKED)
    if not spec.device.startswith("cuda"):  # a process that has opened a device must not be forked
        yield Fix(
            change='start_method="fork", or DummyVecEnv for a light env (an estimate: forked '
            "workers share the imports)",
            ledger=resized(ledger, (ROW,), lambda size: knob("n_envs") * left),
            safe=True,
            estimated=True,
            changes=Changes(parts={WORKERS: "fork"}),
        )
    yield Fix(
        change="vec_env_cls=memfit.dropins.LightVecEnv (an estimate: one process with the imports, "
        "which all workers share)",
        ledger=resized(ledger, (ROW,), lambda size: knob("n_envs") * left + imported),
        safe=True,
        estimated=True,
        changes=Changes(parts={WORKERS: "LightVecEnv"}),
    )


def _each(ledger: Ledger) -> int:
    return named(ledger, [ROW]) // max(1, ledger.knobs.get("n_envs", 1))
